import type { ConfigMap, Secret } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';

/** What pods refer to by name within their namespace. */
export type ReferredObject = ConfigMap | Secret;

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Objects that pods refer to. Adding and removing neither wait nor fail: they are part of every sync. Adding one that
 * a pod has added before changes nothing.
 */
export interface ReferredStore<T> {
  add(object: ObjectName, pod: PodUid): void;
  remove(object: ObjectName, pod: PodUid): void;
  /** Undefined when there is no such object; throws when that cannot be told, or no pod has added it. */
  get(object: ObjectName, signal: AbortSignal): Promise<T | undefined>;
}

/** Names have no slash. */
export function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}

export function notRegistered({ namespace, name }: ObjectName): KubelingError {
  return new KubelingError('OBJECT_NOT_REGISTERED', `object "${namespace}"/"${name}" not registered`);
}
