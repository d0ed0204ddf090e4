import type { Node, PodStatus } from '../../kinds/index.ts';
import type { Patch } from '../client/client.ts';
import { orderPrefix, patchWord, removePrefix, retainKeysWord } from './directives.ts';
import { isJsonObject, type JsonObject, sameValue, withoutEmptyFields } from './json.ts';
import type { PatchField, PatchSchema } from './schema.ts';

type Entry = readonly [name: string, value: unknown];

/**
 * Computes the smallest strategic merge patch from one value of a kind to another; undefined if
 * they are equal. Items of merged lists that only the server has are preserved.
 */
export function strategicDiff(
  schema: PatchSchema,
  kind: string,
  before: object,
  after: object,
): JsonObject | undefined {
  return diffObject(
    schema,
    kind,
    withoutEmptyFields(before) as JsonObject,
    withoutEmptyFields(after) as JsonObject,
  );
}

function diffObject(
  schema: PatchSchema,
  kind: string | undefined,
  before: JsonObject,
  after: JsonObject,
): JsonObject | undefined {
  const gone: readonly Entry[] = Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => [name, null]);
  const changed = Object.entries(after).flatMap(([name, value]) =>
    diffField(schema, schema.field(kind, name), name, before[name], value),
  );
  const entries = [...changed, ...gone];
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function diffField(
  schema: PatchSchema,
  field: PatchField,
  name: string,
  before: unknown,
  after: unknown,
): readonly Entry[] {
  if (sameValue(before, after)) return [];
  if (isJsonObject(after) && (before === undefined || isJsonObject(before))) {
    return [[name, diffObject(schema, field.kind, before ?? {}, after) ?? {}]];
  }
  if (!Array.isArray(after)) return [[name, after]];
  if (mustReplace(field, before, after)) return [[name, [...after, { [patchWord]: 'replace' }]]];
  return Array.isArray(before) ? diffList(schema, field, name, before, after) : [[name, after]];
}

function diffList(
  schema: PatchSchema,
  { merge, kind }: PatchField,
  name: string,
  before: readonly unknown[],
  after: readonly unknown[],
): readonly Entry[] {
  if (merge.by === 'whole') return [[name, after]];
  if (merge.by === 'value') return diffValues(name, before, after);
  const { key, keeps } = merge;
  if (!isKeyed(before, key) || !isKeyed(after, key)) return [[name, after]];
  const old = new Map(before.map((item) => [item[key], item]));
  const changed = after.flatMap((item) => diffItem(schema, kind, key, keeps, old.get(item[key]), item));
  const desired = new Set(after.map((item) => item[key]));
  const deleted = before
    .filter((item) => !desired.has(item[key]))
    .map((item) => ({ [patchWord]: 'delete', [key]: item[key] }));
  const items = [...changed, ...deleted];
  const order = after.map((item) => ({ [key]: item[key] }));
  return [...ordering(name, order), ...(items.length > 0 ? [[name, items] as const] : [])];
}

function diffItem(
  schema: PatchSchema,
  kind: string | undefined,
  key: string,
  keeps: 'all-fields' | 'named-fields',
  before: JsonObject | undefined,
  after: JsonObject,
): readonly JsonObject[] {
  if (before === undefined) return [after];
  const change = diffObject(schema, kind, before, after);
  if (change === undefined) return [];
  const named = keeps === 'named-fields' ? { [retainKeysWord]: Object.keys(after).sort() } : {};
  return [{ ...named, [key]: after[key], ...change }];
}

/** Adds the `$setElementOrder` directive; not for an empty list, which API servers may reject. */
function ordering(name: string, order: readonly unknown[]): readonly Entry[] {
  return order.length === 0 ? [] : [[orderPrefix + name, order]];
}

function diffValues(name: string, before: readonly unknown[], after: readonly unknown[]): readonly Entry[] {
  const [old, now] = [new Set(before), new Set(after)];
  const added = after.filter((value) => !old.has(value));
  const removed = before.filter((value) => !now.has(value));
  return [
    ...ordering(name, after),
    ...(added.length > 0 ? [[name, added] as const] : []),
    ...(removed.length > 0 ? [[removePrefix + name, removed] as const] : []),
  ];
}

/** Whether a list must be replaced because its merge key does not identify its items. */
function mustReplace({ merge, computed }: PatchField, before: unknown, after: readonly unknown[]): boolean {
  if (computed === 'whole-list') return true;
  if (merge.by !== 'key') return false;
  return !isKeyed(after, merge.key) || (Array.isArray(before) && !isKeyed(before, merge.key));
}

/** Whether all items are objects with different values of the merge key. */
function isKeyed(items: readonly unknown[], key: string): items is readonly JsonObject[] {
  const keys = items.map((item) => (isJsonObject(item) ? item[key] : undefined));
  return !keys.includes(undefined) && new Set(keys).size === keys.length;
}

export interface PodStatusChange {
  /** The UID of the pod: the server rejects the patch if a new pod has the same name. */
  readonly uid: string;
  readonly before: PodStatus;
  readonly after: PodStatus;
}

/** Computes the patch for `pods/<name>/status`; undefined without a change. */
export function podStatusPatch(
  schema: PatchSchema,
  { uid, before, after }: PodStatusChange,
): Patch | undefined {
  const status = strategicDiff(schema, 'PodStatus', before, after);
  return status && { kind: 'strategic', body: { metadata: { uid }, status } };
}

/**
 * Computes the patch for `nodes/<name>/status`, including labels and annotations; undefined without
 * a change.
 */
export function nodeStatusPatch(schema: PatchSchema, before: Node, after: Node): Patch | undefined {
  const body = strategicDiff(schema, 'Node', patchable(before), patchable(after));
  return body && { kind: 'strategic', body };
}

function patchable({ metadata, status }: Node): Node {
  const { labels, annotations } = metadata ?? {};
  return { metadata: { labels: labels ?? {}, annotations: annotations ?? {} }, status: status ?? {} };
}
