import { type JsonObject, withoutEmptyFields } from '../../api/index.ts';

export interface StoredMeta extends JsonObject {
  readonly name: string;
  /** The namespace; absent for cluster-scoped resources. */
  readonly namespace?: string;
  readonly generateName?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly generation?: number;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly JsonObject[];
}

/** An object in the store. It is frozen, so it can be shared. */
export interface StoredObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: StoredMeta;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
}

/**
 * A deep copy of a value as JSON would transfer it: without values that JSON cannot represent and
 * without undefined fields.
 */
export function toWireObject(value: unknown): JsonObject {
  return withoutEmptyFields(JSON.parse(JSON.stringify(value ?? {})) as JsonObject);
}

export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

export function storedObjectKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** Returns the value at a path of field names, such as `spec.nodeName`. */
export function valueAt(object: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as JsonObject | undefined)?.[name], object);
}

const textOverhead = 16;
const fieldOverhead = 8;
const objectOverhead = 32;

/** The approximate memory size of a value in bytes. */
export function estimateSize(value: unknown): number {
  if (typeof value === 'string') return textOverhead + value.length;
  if (typeof value !== 'object' || value === null) return fieldOverhead;
  let size = objectOverhead;
  if (Array.isArray(value)) for (const inner of value) size += fieldOverhead + estimateSize(inner);
  else
    for (const [key, inner] of Object.entries(value))
      size += fieldOverhead + key.length + estimateSize(inner);
  return size;
}
