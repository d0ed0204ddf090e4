import type { Patch } from '../client/client.ts';
import { checkSize, PatchBudget } from './budget.ts';
import { badPatch } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { applyJsonPatch } from './json-patch.ts';
import type { PatchSchema } from './schema.ts';
import { applyStrategicPatch } from './strategic-apply.ts';

/** Applies a patch to an object as an API server does; an invalid patch throws API_INVALID. */
export function applyPatch(schema: PatchSchema, kind: string, object: JsonObject, patch: Patch): JsonObject {
  const patched = patchedBy(schema, kind, object, patch);
  checkSize(patched);
  if (!isJsonObject(patched)) throw badPatch('a patch must leave an object');
  return patched;
}

function patchedBy(
  schema: PatchSchema,
  kind: string,
  object: JsonObject,
  { kind: how, body }: Patch,
): unknown {
  const budget = new PatchBudget();
  if (how === 'json') return applyJsonPatch(object, body, budget);
  if (!isJsonObject(body)) throw badPatch(`a ${how} patch must be an object`);
  return how === 'merge'
    ? applyMergePatch(object, body)
    : applyStrategicPatch({ schema, budget }, kind, object, body);
}

/**
 * Applies a JSON merge patch (RFC 7396): null removes a field, objects are merged, any other value
 * replaces the old one.
 */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const fields = new Map(Object.entries(isJsonObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) fields.delete(name);
    else if (value !== undefined) fields.set(name, applyMergePatch(fields.get(name), value));
  }
  return Object.fromEntries(fields);
}
