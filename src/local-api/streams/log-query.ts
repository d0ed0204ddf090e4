import { type FieldCause, StatusError } from '../api/index.ts';
import { badRequest } from './refusals.ts';

const flags = ['follow', 'previous', 'timestamps'] as const;
const counts = ['sinceSeconds', 'tailLines', 'limitBytes'] as const;
const negative = 'must be greater than or equal to 0';
const notPositive = 'must be greater than 0';
const streams = ['All', 'Stderr', 'Stdout'];

/** The kubelet query for pod log options; throws a StatusError with all causes. */
export function logQuery(query: URLSearchParams, podName: string): URLSearchParams {
  const passed = parseLogOptions(query);
  const causes = logOptionCauses(query, passed);
  if (causes.length === 0) return passed;
  throw invalid(podName, causes);
}

/** Parses numbers, times and flags. */
function parseLogOptions(query: URLSearchParams): URLSearchParams {
  const passed = new URLSearchParams();
  for (const name of flags) if (readFlag(query, name) === 'on') passed.set(name, 'true');
  for (const name of counts) {
    const text = query.get(name) ?? '';
    if (text === '') continue;
    if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
    passed.set(name, String(BigInt(text.replace('+', ''))));
  }
  const since = query.get('sinceTime') ?? '';
  if (since !== '') {
    if (Number.isNaN(Date.parse(since))) throw badRequest(`unable to parse sinceTime "${since}"`);
    passed.set('sinceTime', since);
  }
  const stream = query.get('stream') ?? '';
  if (stream !== '') passed.set('stream', stream);
  return passed;
}

function readFlag(query: URLSearchParams, name: string): 'on' | 'off' {
  const text = query.get(name);
  // A flag without value is true; only '0' and 'false' are false.
  return text === null || ['false', '0'].includes(text.toLowerCase()) ? 'off' : 'on';
}

function logOptionCauses(query: URLSearchParams, passed: URLSearchParams): readonly FieldCause[] {
  const number = (name: string) => (passed.has(name) ? Number(passed.get(name)) : undefined);
  const causes: FieldCause[] = [];
  const wrong = (field: string, message: string) =>
    causes.push({
      reason: 'FieldValueInvalid',
      field,
      message: `Invalid value: ${passed.get(field)}: ${message}`,
    });
  if ((number('tailLines') ?? 0) < 0) wrong('tailLines', negative);
  if ((number('limitBytes') ?? 1) < 1) wrong('limitBytes', notPositive);
  if (passed.has('sinceSeconds') && passed.has('sinceTime'))
    causes.push(forbidden('at most one of `sinceTime` or `sinceSeconds` may be specified'));
  else if ((number('sinceSeconds') ?? 1) < 1) wrong('sinceSeconds', notPositive);
  return [...causes, ...streamCauses(query.get('stream') ?? '', passed)];
}

function streamCauses(stream: string, passed: URLSearchParams): readonly FieldCause[] {
  if (stream === '' || stream === 'All') return [];
  const supported = streams.map((each) => `"${each}"`).join(', ');
  const unknown: FieldCause = {
    reason: 'FieldValueNotSupported',
    field: 'stream',
    message: `Unsupported value: "${stream}": supported values: ${supported}`,
  };
  return [
    ...(streams.includes(stream) ? [] : [unknown]),
    ...(passed.has('tailLines')
      ? [forbidden('`tailLines` and specific `stream` are mutually exclusive for now')]
      : []),
  ];
}

function forbidden(why: string): FieldCause {
  return { reason: 'FieldValueForbidden', field: '[]', message: `Forbidden: ${why}` };
}

function invalid(name: string, causes: readonly FieldCause[]): StatusError {
  const told = causes.map(({ field, message }) => `${field}: ${message}`);
  const list = told.length === 1 ? told.join('') : `[${told.join(', ')}]`;
  const message = `PodLogOptions "${name}" is invalid: ${list}`;
  const details = { name, kind: 'PodLogOptions', causes };
  return new StatusError({ code: 422, reason: 'Invalid', message, details });
}
