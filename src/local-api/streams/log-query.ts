import { type FieldCause, StatusError } from '../api/index.ts';
import { badRequest } from './refusals.ts';

const flags = ['follow', 'previous', 'timestamps'] as const;
const counts = ['sinceSeconds', 'tailLines', 'limitBytes'] as const;
const negative = 'must be greater than or equal to 0';
const notPositive = 'must be greater than 0';
const streams = ['All', 'Stderr', 'Stdout'];

/** The kubelet query for pod log options; throws a StatusError with all causes. */
export function logQuery(query: URLSearchParams, podName: string): URLSearchParams {
  const forwarded = parseLogOptions(query);
  const causes = logOptionCauses(query, forwarded);
  if (causes.length === 0) return forwarded;
  throw invalid(podName, causes);
}

/** Parses log options that are numbers, times and flags. */
function parseLogOptions(query: URLSearchParams): URLSearchParams {
  const forwarded = new URLSearchParams();
  for (const name of flags) if (readFlag(query, name) === 'on') forwarded.set(name, 'true');
  for (const name of counts) {
    const text = query.get(name) ?? '';
    if (text === '') continue;
    if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
    forwarded.set(name, String(BigInt(text.replace('+', ''))));
  }
  const since = query.get('sinceTime') ?? '';
  if (since !== '') {
    if (Number.isNaN(Date.parse(since))) throw badRequest(`unable to parse sinceTime "${since}"`);
    forwarded.set('sinceTime', since);
  }
  const stream = query.get('stream') ?? '';
  if (stream !== '') forwarded.set('stream', stream);
  return forwarded;
}

function readFlag(query: URLSearchParams, name: string): 'on' | 'off' {
  const text = query.get(name);
  // A log option without a value counts as true; only '0' and 'false' are false.
  return text === null || ['false', '0'].includes(text.toLowerCase()) ? 'off' : 'on';
}

function logOptionCauses(query: URLSearchParams, forwarded: URLSearchParams): readonly FieldCause[] {
  const number = (name: string) => (forwarded.has(name) ? Number(forwarded.get(name)) : undefined);
  const causes: FieldCause[] = [];
  const invalidOption = (field: string, message: string) =>
    causes.push({
      reason: 'FieldValueInvalid',
      field,
      message: `Invalid value: ${forwarded.get(field)}: ${message}`,
    });
  if ((number('tailLines') ?? 0) < 0) invalidOption('tailLines', negative);
  if ((number('limitBytes') ?? 1) < 1) invalidOption('limitBytes', notPositive);
  if (forwarded.has('sinceSeconds') && forwarded.has('sinceTime'))
    causes.push(forbidden('at most one of `sinceTime` or `sinceSeconds` may be specified'));
  else if ((number('sinceSeconds') ?? 1) < 1) invalidOption('sinceSeconds', notPositive);
  return [...causes, ...streamCauses(query.get('stream') ?? '', forwarded)];
}

function streamCauses(stream: string, forwarded: URLSearchParams): readonly FieldCause[] {
  if (stream === '' || stream === 'All') return [];
  const supported = streams.map((each) => `"${each}"`).join(', ');
  const unknown: FieldCause = {
    reason: 'FieldValueNotSupported',
    field: 'stream',
    message: `Unsupported value: "${stream}": supported values: ${supported}`,
  };
  return [
    ...(streams.includes(stream) ? [] : [unknown]),
    ...(forwarded.has('tailLines')
      ? [forbidden('`tailLines` and specific `stream` are mutually exclusive for now')]
      : []),
  ];
}

function forbidden(why: string): FieldCause {
  return { reason: 'FieldValueForbidden', field: '[]', message: `Forbidden: ${why}` };
}

function invalid(name: string, causes: readonly FieldCause[]): StatusError {
  const messages = causes.map(({ field, message }) => `${field}: ${message}`);
  const list = messages.length === 1 ? messages.join('') : `[${messages.join(', ')}]`;
  const message = `PodLogOptions "${name}" is invalid: ${list}`;
  const details = { name, kind: 'PodLogOptions', causes };
  return new StatusError({ code: 422, reason: 'Invalid', message, details });
}
