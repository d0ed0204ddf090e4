import { apiError } from '../client/api-error.ts';
import { isJsonObject, type JsonObject } from './json.ts';

/** Directives in a strategic merge patch, which are not fields of the object. */
export const patchWord = '$patch';
export const retainKeysWord = '$retainKeys';
export const orderPrefix = '$setElementOrder/';
export const removePrefix = '$deleteFromPrimitiveList/';

export function badPatch(message: string): Error {
  return apiError({ what: 'apply a patch', status: 400, apiStatus: { message, reason: 'BadRequest' } });
}

/** Creates the error for a valid patch that contradicts itself or does not fit the object. */
export function unfitPatch(message: string): Error {
  return apiError({ what: 'apply a patch', status: 422, apiStatus: { message, reason: 'Invalid' } });
}

function isDirective(name: string): boolean {
  return (
    name === patchWord ||
    name === retainKeysWord ||
    name.startsWith(orderPrefix) ||
    name.startsWith(removePrefix)
  );
}

/**
 * The fields that a patch object changes, either by a value or by a directive for a list, such as
 * `$setElementOrder/ports`.
 */
export function mentionedFields(patch: JsonObject): readonly string[] {
  const names = Object.keys(patch).flatMap((name) => {
    if (name.startsWith(orderPrefix)) return [name.slice(orderPrefix.length)];
    if (name.startsWith(removePrefix)) return [name.slice(removePrefix.length)];
    return isDirective(name) ? [] : [name];
  });
  return [...new Set(names)];
}

export function listOf(patch: JsonObject, name: string): readonly unknown[] | undefined {
  const value = patch[name];
  if (value === undefined || Array.isArray(value)) return value;
  throw badPatch(`${name} must be a list`);
}

/**
 * Returns the value that a part of a patch produces where the object has no value yet: undefined if
 * the part only deletes. Null fields are omitted.
 */
export function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !hasPatchWord(item)).map((item) => withoutDirectives(item));
  }
  if (!isJsonObject(value)) return value;
  if (hasPatchWord(value)) return undefined;
  return plainFields(value);
}

/** Returns the result of applying a patch object to an empty object. */
export function plainFields(patch: JsonObject): JsonObject {
  const entries = Object.entries(patch)
    .filter(([name, inner]) => !isDirective(name) && inner !== null && inner !== undefined)
    .map(([name, inner]) => [name, withoutDirectives(inner)] as const)
    .filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries);
}

function hasPatchWord(value: unknown): boolean {
  return isJsonObject(value) && value[patchWord] !== undefined;
}
