import type { PatchBudget } from './budget.ts';
import {
  badPatch,
  listOf,
  mentionedFields,
  orderPrefix,
  patchWord,
  plainFields,
  removePrefix,
  retainKeysWord,
  withoutDirectives,
} from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { inOrder, mergeItems, mergeValues } from './list-merge.ts';
import type { PatchField, PatchSchema } from './schema.ts';

/** The state needed to apply one patch. */
export interface Applying {
  readonly schema: PatchSchema;
  readonly budget: PatchBudget;
}

/** Returns the object after a strategic merge patch. Neither argument is changed. */
export function applyStrategicPatch(
  applying: Applying,
  kind: string | undefined,
  object: JsonObject,
  patch: JsonObject,
): JsonObject {
  switch (patch[patchWord]) {
    case 'replace':
      return plainFields(patch);
    case 'delete':
      return {};
    case 'merge':
    case undefined:
      return mergeFields(applying, kind, object, patch);
    default:
      throw badPatch(
        `${patchWord} must be merge, replace or delete: current value is ${JSON.stringify(patch[patchWord])}`,
      );
  }
}

function mergeFields(
  applying: Applying,
  kind: string | undefined,
  object: JsonObject,
  patch: JsonObject,
): JsonObject {
  const fields = new Map(Object.entries(object));
  dropUnretained(fields, patch);
  for (const name of mentionedFields(patch)) {
    const value = mergeField(applying, applying.schema.field(kind, name), name, fields.get(name), patch);
    if (value === undefined) fields.delete(name);
    else fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/**
 * Applies `$retainKeys`: removes all fields that it does not name. The patch must not set other
 * fields.
 */
function dropUnretained(fields: Map<string, unknown>, patch: JsonObject): void {
  const named = listOf(patch, retainKeysWord);
  if (named === undefined) return;
  const retained = new Set(named);
  const unretained = mentionedFields(patch).find((name) => patch[name] !== null && !retained.has(name));
  if (unretained !== undefined)
    throw badPatch(`${retainKeysWord} must name ${unretained}, which the patch sets`);
  for (const name of fields.keys()) if (!retained.has(name)) fields.delete(name);
}

function mergeField(
  applying: Applying,
  field: PatchField,
  name: string,
  current: unknown,
  patch: JsonObject,
): unknown {
  const value = patch[name];
  if (value === null) return undefined;
  const isAboutList = Array.isArray(value) || (value === undefined && Array.isArray(current));
  if (isAboutList)
    return mergeList(applying, field, name, Array.isArray(current) ? current : undefined, patch);
  if (value === undefined) return current;
  if (isJsonObject(value) && isJsonObject(current))
    return applyStrategicPatch(applying, field.kind, current, value);
  return withoutDirectives(value);
}

function mergeList(
  applying: Applying,
  { merge, kind }: PatchField,
  name: string,
  current: readonly unknown[] | undefined,
  patch: JsonObject,
): unknown {
  const value = listOf(patch, name);
  const order = listOf(patch, orderPrefix + name);
  const removed = listOf(patch, removePrefix + name);
  if (merge.by !== 'value' && removed !== undefined)
    throw badPatch(`${removePrefix}${name} must be about a list of single values that is merged`);
  if (merge.by === 'whole') {
    if (order !== undefined) throw badPatch(`${orderPrefix}${name} must be about a list that is merged`);
    return withoutDirectives(value);
  }
  if (merge.by === 'value') {
    const items = inOrder({ items: mergeValues(current, value), order, current, key: undefined, value });
    const gone = new Set(removed);
    return items.filter((item) => !gone.has(item));
  }
  const mergeItem = (item: JsonObject, change: JsonObject) =>
    applyStrategicPatch(applying, kind, item, change);
  const items = mergeItems({
    current,
    changes: value,
    key: merge.key,
    order,
    mergeItem,
    budget: applying.budget,
  });
  return inOrder({ items, order, current, key: merge.key, value });
}
