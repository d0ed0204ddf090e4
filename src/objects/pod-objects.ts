import type { ConfigMap, Secret } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { Pod, PodUid } from '../pods/index.ts';
import { PodReferences } from './pod-references.ts';
import { configMapNamesOf, secretNamesOf } from './references.ts';
import type { ReferredStore } from './referred-store.ts';

/**
 * The secrets and config maps of the pods on this node. A pod is registered before any of its
 * objects is read, at every sync, and unregistered when its volumes are removed; neither call waits
 * or fails, and both are idempotent. Readers get undefined for a missing object, and an error when
 * the state of the object is not known.
 */
export interface PodObjects {
  register(pod: Pod): void;
  unregister(uid: PodUid): void;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined>;
  /** Maintains the caches until it is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** A store that may have background work. */
export interface RunningStore<T> extends ReferredStore<T> {
  run(signal: AbortSignal): Promise<void>;
}

export interface PodObjectStores {
  readonly secrets: RunningStore<Secret>;
  readonly configMaps: RunningStore<ConfigMap>;
}

export class StoredPodObjects implements PodObjects {
  readonly #stores: PodObjectStores;
  readonly #secrets: PodReferences<Secret>;
  readonly #configMaps: PodReferences<ConfigMap>;

  constructor(stores: PodObjectStores) {
    this.#stores = stores;
    this.#secrets = new PodReferences(stores.secrets, secretNamesOf);
    this.#configMaps = new PodReferences(stores.configMaps, configMapNamesOf);
  }

  register(pod: Pod): void {
    this.#secrets.register(pod);
    this.#configMaps.register(pod);
  }

  unregister(uid: PodUid): void {
    this.#secrets.unregister(uid);
    this.#configMaps.unregister(uid);
  }

  async secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined> {
    return await this.#stores.secrets.get({ namespace, name }, signal);
  }

  async configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined> {
    return await this.#stores.configMaps.get({ namespace, name }, signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const running = [this.#stores.secrets.run(signal), this.#stores.configMaps.run(signal)];
    try {
      await Promise.all(running);
    } finally {
      // Waits for all loops, because a loop that ends first may leave work in flight.
      if (signal.aborted) await Promise.allSettled(running);
    }
  }
}

/**
 * For callers to whom a missing secret is a failure, such as image pulls. Throws OBJECT_NOT_FOUND.
 */
export async function requiredSecret(
  objects: Pick<PodObjects, 'secret'>,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Secret> {
  const found = await objects.secret(namespace, name, signal);
  if (found === undefined) throw new KubelingError('OBJECT_NOT_FOUND', `secret "${name}" not found`);
  return found;
}
