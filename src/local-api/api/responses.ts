import type { JsonObject } from '../../api/index.ts';
import type { StatusBody, StatusError } from './api-types.ts';

/** A page of objects, each of them whole. */
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

/** What a call that went well is answered. Objects are frozen, so that what is made of one may be kept with it. */
export type ApiAnswer =
  | { readonly kind: 'object'; readonly code: 200 | 201; readonly object: JsonObject }
  | { readonly kind: 'list'; readonly code: 200; readonly list: ObjectList }
  | { readonly kind: 'status'; readonly code: number; readonly status: JsonObject };

/**
 * What a watcher is told. Watchers of one resource get the very same frozen object for one change, so that its text may
 * be made once. After an ERROR the watch ends.
 */
export type WatchLine =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: JsonObject }
  | { readonly type: 'BOOKMARK'; readonly object: JsonObject }
  | { readonly type: 'ERROR'; readonly object: JsonObject };

/** Items as they stand in a list, each the same one every time it is asked for. */
const items = new WeakMap<JsonObject, JsonObject>();

/** A list as it goes over the wire: it says itself of what kind its items are, and they do not repeat it. */
export function wireList(list: ObjectList): JsonObject {
  return { ...list, items: list.items.map(itemOf) };
}

function itemOf(object: JsonObject): JsonObject {
  const known = items.get(object);
  if (known !== undefined) return known;
  const { kind: _, apiVersion: __, ...rest } = object;
  items.set(object, rest);
  return rest;
}

/** A refusal as it goes over the wire. */
export function failureStatus({ code, reason, message, details, next }: StatusBody): JsonObject {
  const metadata = next === undefined ? {} : { continue: next.continue };
  const about = { ...(reason === '' ? {} : { reason }), ...(details === undefined ? {} : { details }) };
  return { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message, ...about, code };
}

export function statusOf({ status }: StatusError): JsonObject {
  return failureStatus(status);
}

/** The answer of who did what was asked and has nothing else to show. */
export function successStatus(details?: StatusBody['details']): JsonObject {
  const about = details === undefined ? {} : { details };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...about };
}
