import { readFileSync, writeFileSync } from 'node:fs';

export type Json = Readonly<Record<string, unknown>>;

/**
 * One request to a real API server and its recorded response. The requests are sent in their order.
 */
export interface RecordedCall {
  /** PUT updates an object: `body` is merged into its current state. */
  readonly method: 'POST' | 'PUT';
  readonly group: string;
  readonly resource: string;
  readonly scope: 'namespace' | 'cluster';
  readonly kind: string;
  readonly name?: string;
  readonly part?: string;
  readonly body: Json;
  /** The reason why the embedded API responds differently; undefined where it responds the same. */
  readonly differs?: string;
  readonly answer: RecordedAnswer;
}

export interface RecordedAnswer {
  readonly code: number;
  /** The reason of an error response. */
  readonly reason?: string;
  readonly message?: string;
  readonly details?: Json;
  /** The object in a successful response, without fields that vary between runs. */
  readonly object?: Json;
}

const file = new URL('answers.jsonl', import.meta.url);

export function readCalls(): readonly RecordedCall[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as RecordedCall);
}

/** Writes the recorded calls, one per line. */
export function writeCalls(calls: readonly RecordedCall[]): void {
  writeFileSync(file, calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
}

/** The URL path of a call: that of the resource, or of the named object. */
export function pathOf({ group, resource, scope, name, part }: RecordedCall): string {
  const root = group === '' ? '/api/v1' : `/apis/${group}/v1`;
  const directory = scope === 'namespace' ? '/namespaces/default' : '';
  return [`${root}${directory}/${resource}`, name, part].filter((step) => step !== undefined).join('/');
}

export function recordable(code: number, body: Json): RecordedAnswer {
  if (code < 400) return { code, object: scrubbed(body) as Json };
  const { reason, message, details } = body as { reason?: string; message?: string; details?: Json };
  return {
    code,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(details === undefined ? {} : { details }),
  };
}

const dropped = ['uid', 'creationTimestamp', 'resourceVersion', 'managedFields'];
/** The field in which a server adds information about the requesting user. */
const added = 'extra';
const varying = [
  'lastTransitionTime',
  'lastUpdateTime',
  'lastPhaseTransitionTime',
  'expirationTimestamp',
  'token',
  'clusterIP',
  'nodePort',
  'healthCheckNodePort',
  'audiences',
];

/**
 * Removes fields that vary between runs and fields that are null, and replaces random values with
 * `~`.
 */
function scrubbed(value: unknown, inside?: string): unknown {
  if (Array.isArray(value))
    return inside === 'clusterIPs' && value[0] !== 'None' ? ['~'] : value.map((item) => scrubbed(item));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(
    ([name, inner]) => inner !== null && name !== added && !(inside === 'metadata' && dropped.includes(name)),
  );
  return Object.fromEntries(
    fields.map(([name, inner]) => [
      name,
      varying.includes(name) && inner !== 'None' ? '~' : scrubbed(inner, name),
    ]),
  );
}

/** The object with a JSON merge patch applied. */
export function merged(object: Json, patch: Json): Json {
  const fields = Object.entries(patch).map(
    ([name, value]) => [name, mergedField(object[name], value)] as const,
  );
  const all = { ...object, ...Object.fromEntries(fields) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

function mergedField(before: unknown, value: unknown): unknown {
  const isMap = (each: unknown): each is Json =>
    typeof each === 'object' && each !== null && !Array.isArray(each);
  return isMap(value) ? merged(isMap(before) ? before : {}, value) : value;
}
