import { type JsonObject, withoutEmptyFields } from '../../api/index.ts';

export interface StoredMeta extends JsonObject {
  readonly name: string;
  /** Left out for objects of the cluster. */
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

/** An object in the store. It is frozen, and so everyone may have it. */
export interface StoredObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: StoredMeta;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
}

/** What becomes of a value on its way over a wire: a copy, without what JSON cannot say and without empty fields. */
export function overTheWire(value: unknown): JsonObject {
  return withoutEmptyFields(JSON.parse(JSON.stringify(value ?? {})) as JsonObject);
}

export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

export function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** The value at a path of fields, such as `spec.nodeName`. */
export function valueAt(object: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as JsonObject | undefined)?.[name], object);
}

const ofText = 16;
const ofField = 8;
const ofObject = 32;

/** About how many bytes of memory a value takes: enough to tell a large object from a small one. */
export function roughSize(value: unknown): number {
  if (typeof value === 'string') return ofText + value.length;
  if (typeof value !== 'object' || value === null) return ofField;
  return Object.values(value).reduce((sum: number, inner) => sum + ofField + roughSize(inner), ofObject);
}
