import type { ConfigMap, Secret } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';

/** The kinds of objects to which containers and volumes of a pod refer. */
export type ReferredObject = ConfigMap | Secret;

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Objects to which pods refer. Adding and removing a reference neither wait nor fail, because they
 * are part of every sync. Adding is idempotent for each pod.
 */
export interface ReferredStore<T> {
  add(object: ObjectName, pod: PodUid): void;
  remove(object: ObjectName, pod: PodUid): void;
  /**
   * Reads an object: undefined when it does not exist; throws when its state is unknown, or when no
   * pod refers to it.
   */
  get(object: ObjectName, signal: AbortSignal): Promise<T | undefined>;
}

/** The key of an object. It is unambiguous, because names contain no slash. */
export function objectNameKey({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}

export function notRegistered({ namespace, name }: ObjectName): KubelingError {
  return new KubelingError('OBJECT_NOT_REGISTERED', `object "${namespace}"/"${name}" not registered`);
}
