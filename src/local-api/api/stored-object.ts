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
  if (Array.isArray(value)) for (const inner of value) frozen(inner);
  else for (const name in value) frozen((value as JsonObject)[name]);
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
  else for (const key in value) size += fieldOverhead + key.length + estimateSize((value as JsonObject)[key]);
  return size;
}

const largeParts = 1_000;
const charactersPerPart = 256;

/**
 * Whether work on the value takes so long that it must be divided over several iterations of the
 * event loop. An ordinary pod consists of a few hundred values.
 */
export function isLarge(value: unknown): boolean {
  let left = largeParts;
  const visit = (part: unknown): boolean => {
    left -= 1 + (typeof part === 'string' ? part.length / charactersPerPart : 0);
    if (left < 0) return true;
    if (typeof part !== 'object' || part === null) return false;
    if (Array.isArray(part)) return part.some(visit);
    for (const key in part) if (visit((part as JsonObject)[key])) return true;
    return false;
  };
  return visit(value);
}
