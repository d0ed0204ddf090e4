import { readFileSync, writeFileSync } from 'node:fs';

export type Json = Readonly<Record<string, unknown>>;

/** One request of the script, and what a real API server answered to it. They are asked in order. */
export interface RecordedCall {
  /** An update is made of the object as it is then: `body` is merged into it. */
  readonly method: 'POST' | 'PUT';
  readonly group: string;
  readonly resource: string;
  readonly scope: 'namespace' | 'cluster';
  readonly kind: string;
  readonly name?: string;
  readonly part?: string;
  readonly body: Json;
  /** Why the embedded API answers something else, where it does. */
  readonly differs?: string;
  readonly answer: RecordedAnswer;
}

export interface RecordedAnswer {
  readonly code: number;
  /** Of a refusal. */
  readonly reason?: string;
  readonly message?: string;
  readonly details?: Json;
  /** Of what went well, without what is another one each time. */
  readonly object?: Json;
}

const file = new URL('answers.jsonl', import.meta.url);

export function readCalls(): readonly RecordedCall[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as RecordedCall);
}

/** One line a call. */
export function writeCalls(calls: readonly RecordedCall[]): void {
  writeFileSync(file, calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
}

/** Where the objects of a call lie, and the one it is about if it names one. */
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
/** What a server adds to who asks. */
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

/** Without what differs each time, and without fields that are null; of what is chosen by chance only that it is there. */
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

/** The object with a patch merged into it. */
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
