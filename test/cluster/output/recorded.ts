import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../../../src/local-api/output/testdata');

/** Reads a recording: the recorded responses by their requests. */
export function readRecorded<T>(name: string): Readonly<Record<string, T>> {
  const lines = readFileSync(join(folder, `${name}.jsonl`), 'utf8')
    .trim()
    .split('\n');
  return Object.fromEntries(lines.map((line) => JSON.parse(line) as [string, T]));
}

/** Writes one line per response, so that a new recording shows which responses have changed. */
export function writeRecorded(name: string, responses: Readonly<Record<string, object>>): void {
  const lines = Object.entries(responses).map((response) => `${JSON.stringify(response)}\n`);
  writeFileSync(join(folder, `${name}.jsonl`), lines.join(''));
}

/** The API groups that the embedded API serves too. */
export const servedGroups: readonly string[] = [
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'events.k8s.io',
  'node.k8s.io',
  'policy',
  'scheduling.k8s.io',
  'storage.k8s.io',
];

/** The paths of the recorded discovery documents. */
export const discoveredPaths: readonly string[] = [
  '/api',
  '/api/v1',
  ...servedGroups.flatMap((group) => [`/apis/${group}`, `/apis/${group}/v1`]),
];

interface RawTable {
  readonly columnDefinitions: readonly { readonly description: string }[];
  readonly rows: readonly {
    readonly object: { readonly metadata: { readonly managedFields?: unknown } & Record<string, unknown> };
  }[];
}

/** Removes descriptions, which kubeling writes itself, and managed fields from a table. */
export function withoutWords(table: RawTable): object {
  return {
    ...table,
    columnDefinitions: table.columnDefinitions.map((column) => ({ ...column, description: '' })),
    rows: table.rows.map((row) => {
      const { managedFields: _, ...metadata } = row.object.metadata;
      return { ...row, object: { ...row.object, metadata } };
    }),
  };
}

type Json = Readonly<Record<string, unknown>>;

export interface RecordedOpenApi {
  /** A hash of each schema by the name of the schema. */
  readonly schemas: Readonly<Record<string, string>>;
  /** For each path and method the action, and the kind of its object. */
  readonly operations: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const methods = ['get', 'put', 'post', 'patch', 'delete'];

/** Returns the facts of an OpenAPI document that are compared; descriptions are not. */
export function openApiFacts({ paths, components }: OpenApiDocument): RecordedOpenApi {
  const schemas = Object.entries(components.schemas).map(([name, schema]) => [name, markOf(plain(schema))]);
  const operations = Object.entries(paths).map(([path, item]) => {
    const known = Object.entries(item).filter(([method]) => methods.includes(method));
    return [
      path,
      Object.fromEntries(known.map(([method, operation]) => [method, operationFacts(operation)])),
    ];
  });
  return { schemas: Object.fromEntries(schemas), operations: Object.fromEntries(operations) };
}

function operationFacts(operation: Json): string {
  const name = operation['x-kubernetes-group-version-kind'] as Json | undefined;
  return `${String(operation['x-kubernetes-action'])} ${String(name?.['kind'])}`;
}

function markOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

/** Properties that the embedded API does not publish: descriptions, defaults and unions. */
const unsaid = new Set(['description', 'default', 'x-kubernetes-unions']);

/** Sorts the fields, and simplifies references to schemas. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const retained = Object.entries(value).filter(
    ([name, inner]) => !unsaid.has(name) || (name === 'description' && typeof inner !== 'string'),
  );
  const sorted = Object.fromEntries(
    retained.toSorted(byName).map(([name, inner]) => [name, plainPart(name, inner)]),
  );
  const inside = sorted['allOf'] as readonly unknown[] | undefined;
  return inside?.length === 1 && Object.keys(sorted).length === 1 ? inside[0] : sorted;
}

/** Sorts the required fields, because their order has no meaning. */
function plainPart(name: string, value: unknown): unknown {
  return name === 'required' && Array.isArray(value) ? value.toSorted() : plain(value);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
