import type { Patch } from '../client/client.ts';
import { checkSize, PatchBudget } from './budget.ts';
import { badPatch } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { applyJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';
import type { PatchSchema } from './schema.ts';
import { applyStrategicPatch } from './strategic-apply.ts';

/** What a patch makes of an object, as an API server would; a patch that makes no sense throws API_INVALID. */
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
