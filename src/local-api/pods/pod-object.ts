import type { JsonObject } from '../../api/index.ts';
import { apiResources } from '../../api/index.ts';
import type { PodSpec, Pod as WrittenPod } from '../../kinds/index.ts';
import { apiTime, type Clock } from '../../lib/index.ts';
import type { StoredObject } from '../api/index.ts';
import { forbidden } from '../api/index.ts';

/** A stored pod with typed fields. */
export type TypedPod = WrittenPod & { readonly spec: PodSpec };

export function typed(pod: StoredObject): TypedPod {
  return pod as unknown as TypedPod;
}

/** A copy of the pod with the given spec. */
export function withSpec(pod: StoredObject, spec: PodSpec): StoredObject {
  return { ...pod, spec: spec as unknown as JsonObject };
}

/** A copy of the object with the given fields; undefined removes a field. */
export function withFields<T extends object>(object: T, fields: Partial<Record<keyof T, unknown>>): T {
  const merged = Object.entries({ ...object, ...fields });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined)) as T;
}

export const mirrorAnnotation = 'kubernetes.io/config.mirror';

export function isMirror(pod: StoredObject): boolean {
  return pod.metadata.annotations?.[mirrorAnnotation] !== undefined;
}

export interface NewCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason?: string;
  readonly message?: string;
}

/**
 * A copy of the pod with the given condition; lastTransitionTime changes only when the status of
 * the condition does.
 */
export function withCondition(pod: StoredObject, condition: NewCondition, clock: Clock): StoredObject {
  const all = conditionsOf(pod);
  const before = all.find(({ type }) => type === condition.type);
  const isSame = before !== undefined && before['status'] === condition.status;
  const lastTransitionTime = isSame ? before['lastTransitionTime'] : apiTime(clock.now());
  const next = { ...condition, lastTransitionTime };
  const conditions = before === undefined ? [...all, next] : all.map((one) => (one === before ? next : one));
  return { ...pod, status: { ...pod.status, conditions } };
}

export function conditionsOf(pod: StoredObject): readonly JsonObject[] {
  return (pod.status?.['conditions'] ?? []) as readonly JsonObject[];
}

/** A Forbidden error of an admission plugin. */
export function podForbidden(
  { metadata }: StoredObject,
  why: string,
  causes?: Parameters<typeof forbidden>[2],
): Error {
  return forbidden({ resource: apiResources.pods, name: metadata.name }, why, causes);
}
