import { GrpcError } from '../../src/protocols/grpc/index.ts';

interface Filterable {
  readonly namespace: string;
  readonly topic: string;
}

type Check = (event: Filterable) => boolean;

const condition = /^\s*(namespace|topic)\s*(==|!=|~=)\s*("(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)/;

/**
 * Parses containerd's event filters: all comma-separated conditions of a filter must match, and one
 * of several filters suffices.
 */
export function eventFilter(filters: readonly string[]): Check {
  const checks = filters.map(parseFilter);
  return checks.length === 0 ? () => true : (event) => checks.some((check) => check(event));
}

function parseFilter(text: string): Check {
  const checks: Check[] = [];
  for (let rest = text; rest !== ''; ) {
    const match = condition.exec(rest);
    if (match === null) {
      throw new GrpcError('INVALID_ARGUMENT', `failed parsing subscription filters: cannot read "${rest}"`);
    }
    const [whole, field, operator, value = ''] = match;
    checks.push(check(field as keyof Filterable, operator as string, unquote(value)));
    rest = rest.slice(whole.length);
  }
  return (event) => checks.every((holds) => holds(event));
}

function check(field: keyof Filterable, operator: string, value: string): Check {
  if (operator === '==') return (event) => event[field] === value;
  if (operator === '!=') return (event) => event[field] !== value;
  const pattern = new RegExp(value);
  return (event) => pattern.test(event[field]);
}

function unquote(value: string): string {
  return value.startsWith('"') ? (JSON.parse(value) as string) : value;
}
