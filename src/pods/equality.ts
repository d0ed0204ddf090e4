import { annotations, type Pod } from './pod.ts';

/**
 * Whether two JSON values are equal. The order of keys is irrelevant; an undefined value equals a
 * missing key.
 */
export function sameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && sameList(a, b);
  return sameFields(a as Fields, b as Fields);
}

type Fields = Readonly<Record<string, unknown>>;

function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
}

function sameFields(a: Fields, b: Fields): boolean {
  return (
    Object.keys(a).every((key) => sameJson(a[key], comparable(b, key))) &&
    Object.keys(b).every((key) => b[key] === undefined || comparable(a, key) !== undefined)
  );
}

function comparable(object: Fields, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * Annotations that only the kubelet sets: their values in pods from the API server or from
 * manifests are ignored.
 */
const localAnnotations: ReadonlySet<string> = new Set([
  annotations.source,
  annotations.mirror,
  annotations.seen,
]);

export function isLocalAnnotation(key: string): boolean {
  return localAnnotations.has(key);
}

/**
 * What differs between two versions of a pod, as far as the kubelet reacts to it: nothing, only the
 * status, or the desired state.
 */
export type PodChange = 'none' | 'status' | 'desired';

export function changeOf(before: Pod, after: Pod): PodChange {
  if (!sameDesired(before, after)) return 'desired';
  return sameJson(before.status, after.status) ? 'none' : 'status';
}

function sameDesired(before: Pod, after: Pod): boolean {
  const [a, b] = [before.metadata, after.metadata];
  return (
    sameJson(before.spec, after.spec) &&
    sameJson(a.labels ?? {}, b.labels ?? {}) &&
    a.deletionTimestamp === b.deletionTimestamp &&
    a.deletionGracePeriodSeconds === b.deletionGracePeriodSeconds &&
    sameJson(withoutLocal(a.annotations), withoutLocal(b.annotations))
  );
}

function withoutLocal(written: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(written).filter(([key]) => !isLocalAnnotation(key)));
}
