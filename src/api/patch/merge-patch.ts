import { isJsonObject } from './json.ts';

/** A JSON merge patch (RFC 7396): null removes, objects are merged, anything else takes the place of what was there. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const fields = new Map(Object.entries(isJsonObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) fields.delete(name);
    else if (value !== undefined) fields.set(name, applyMergePatch(fields.get(name), value));
  }
  return Object.fromEntries(fields);
}
