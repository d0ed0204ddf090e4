import type { JsonObject } from '../../api/index.ts';
import type { StatusBody, StatusError } from './api-types.ts';

/** A list with complete objects (with kind and apiVersion). */
export interface ObjectList {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly JsonObject[];
}

/**
 * The result of a successful call. Objects are frozen, so that derived values can be cached by
 * object.
 */
export type ApiResponse =
  | { readonly kind: 'object'; readonly code: 200 | 201; readonly object: JsonObject }
  | { readonly kind: 'list'; readonly code: 200; readonly list: ObjectList }
  | { readonly kind: 'status'; readonly code: number; readonly status: JsonObject };

/**
 * A watch event. All watchers of a resource get the same frozen object for one change, so that they
 * can share its encoding. The watch ends after an ERROR event.
 */
export type ServedWatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject }
  | { readonly type: 'BOOKMARK'; readonly object: JsonObject }
  | { readonly type: 'ERROR'; readonly object: JsonObject };

/** A cache of list items by stored object, so that each object is converted once. */
const itemBodies = new WeakMap<JsonObject, JsonObject>();

/**
 * The list as sent to clients: items have neither kind nor apiVersion, because the list kind
 * implies them.
 */
export function listBody(list: ObjectList): JsonObject {
  return { ...list, items: list.items.map(itemBody) };
}

function itemBody(object: JsonObject): JsonObject {
  const known = itemBodies.get(object);
  if (known !== undefined) return known;
  const { kind: _, apiVersion: __, ...rest } = object;
  itemBodies.set(object, rest);
  return rest;
}

/** The Status object of an error. */
export function failureStatus({ code, reason, message, details, next }: StatusBody): JsonObject {
  const metadata = next === undefined ? {} : { continue: next.continue };
  const about = { ...(reason === '' ? {} : { reason }), ...(details === undefined ? {} : { details }) };
  return { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message, ...about, code };
}

export function statusOf({ status }: StatusError): JsonObject {
  return failureStatus(status);
}

/** The Status of a request that succeeded and returns no object. */
export function successStatus(details?: StatusBody['details']): JsonObject {
  const about = details === undefined ? {} : { details };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...about };
}
