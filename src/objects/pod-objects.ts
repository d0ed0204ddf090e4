import { type ApiClient, type ApiResource, apiResources, isApiCode, ObjectReflector } from '../api/index.ts';
import type { ConfigMap, Secret } from '../kinds/index.ts';
import { type Clock, KubelingError, type Logger, type Random, untilAborted } from '../lib/index.ts';
import type { Pod, PodUid } from '../pods/index.ts';
import { CacheStore, type FetchObject, objectTtlMs } from './cache-store.ts';
import { configMapNamesOf, PodReferences, secretNamesOf } from './references.ts';
import type { ObjectName, ReferredObject, ReferredStore } from './referred-store.ts';
import { WatchStore } from './watch-store.ts';

/**
 * The secrets and config maps of the pods on this node. Each sync registers the pod before it reads
 * any of its objects; the pod is unregistered when its volumes are removed. Registering and
 * unregistering neither wait nor fail, and both are idempotent. Reads return undefined for a
 * missing object, and throw when the state of the object is unknown.
 */
export interface PodObjects {
  register(pod: Pod): void;
  unregister(uid: PodUid): void;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined>;
  /** Maintains the caches of objects until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** A store of the objects to which pods refer; it may have a background loop. */
export interface RunningStore<T> extends ReferredStore<T> {
  run(signal: AbortSignal): Promise<void>;
}

export interface PodObjectStores {
  readonly secrets: RunningStore<Secret>;
  readonly configMaps: RunningStore<ConfigMap>;
}

class StoredPodObjects implements PodObjects {
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
      // Waits for the background loops of all stores, even if one has already failed.
      if (signal.aborted) await Promise.allSettled(running);
    }
  }
}

/** Reads a secret that must exist, for example for an image pull. Throws OBJECT_NOT_FOUND. */
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

/** How object changes are detected: the setting `configMapAndSecretChangeDetectionStrategy`. */
export type ChangeDetection = 'Watch' | 'Cache' | 'Get';

export interface PodObjectsDeps {
  readonly api: Pick<ApiClient, 'get' | 'list' | 'watch'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly syncFrequencyMs: number;
  /**
   * The annotations of the Node object, which may set the TTL of cached objects; undefined when the
   * Node is not available.
   */
  readonly nodeAnnotations: () => Readonly<Record<string, string>> | undefined;
  /** Called when a watched object has changed, so that the pods that use it are synced. */
  readonly changed?: ((object: ChangedObject) => void) | undefined;
}

export interface ChangedObject extends ObjectName {
  readonly kind: 'secret' | 'configmap';
}

export function makePodObjects(detection: ChangeDetection, deps: PodObjectsDeps): PodObjects {
  return new StoredPodObjects({
    secrets: storeOf<Secret>(detection, 'secret', apiResources.secrets, deps),
    configMaps: storeOf<ConfigMap>(detection, 'configmap', apiResources.configMaps, deps),
  });
}

function storeOf<T extends ReferredObject>(
  detection: ChangeDetection,
  kind: ChangedObject['kind'],
  resource: ApiResource,
  deps: PodObjectsDeps,
): RunningStore<T> {
  const { api, clock, logger, syncFrequencyMs } = deps;
  const fetch: FetchObject<T> = (object, freshness, signal) =>
    api.get<T>({ resource, ...object }, freshness === 'any' ? { resourceVersion: '0' } : {}, signal);
  switch (detection) {
    case 'Watch': {
      const follow = (object: ObjectName) => {
        const reflector = reflectorOf<T>(resource, object, deps);
        // The first state of an object is only returned to the reader; later additions, changes and
        // deletions are also reported.
        let isFirst = true;
        reflector.onChange(({ type }) => {
          if (type !== 'added' || !isFirst) deps.changed?.({ kind, ...object });
        });
        reflector.onSet(() => {
          isFirst = false;
        });
        return reflector;
      };
      return new WatchStore<T>({ clock, logger, kind, follow, syncFrequencyMs });
    }
    case 'Cache': {
      const ttlMs = () => objectTtlMs(deps.nodeAnnotations());
      return passiveStore(new CacheStore<T>({ clock, logger, fetch, ttlMs }));
    }
    case 'Get':
      return passiveStore(directStore(fetch));
  }
}

function reflectorOf<T extends ReferredObject>(
  resource: ApiResource,
  object: ObjectName,
  { api: client, clock, random, logger }: PodObjectsDeps,
): ObjectReflector<T> {
  const isFinal = ({ immutable }: ReferredObject) => immutable === true;
  return new ObjectReflector<T>({ client, clock, random, logger, ref: { resource, ...object }, isFinal });
}

function passiveStore<T>(store: ReferredStore<T>): RunningStore<T> {
  return {
    add: (object, pod) => store.add(object, pod),
    remove: (object, pod) => store.remove(object, pod),
    get: (object, signal) => store.get(object, signal),
    run: untilAborted,
  };
}

/** Reads the object from the API server on each call. */
function directStore<T>(fetch: FetchObject<T>): ReferredStore<T> {
  return {
    add() {},
    remove() {},
    async get(object, signal) {
      try {
        return await fetch(object, 'newest', signal);
      } catch (error) {
        if (isApiCode(error, 'API_NOT_FOUND')) return undefined;
        throw error;
      }
    },
  };
}
