import { type ApiClient, type ApiResource, apiResources, isApiCode, ObjectReflector } from '../api/index.ts';
import type { ConfigMap, Secret } from '../kinds/index.ts';
import { type Clock, type Logger, type Random, untilAborted } from '../lib/index.ts';
import { CacheStore, type FetchObject } from './cache-store.ts';
import { objectTtlMs } from './object-ttl.ts';
import { type PodObjects, type RunningStore, StoredPodObjects } from './pod-objects.ts';
import type { ObjectName, ReferredObject, ReferredStore } from './referred-store.ts';
import { WatchStore } from './watch-store.ts';

/** Detection of object changes: `configMapAndSecretChangeDetectionStrategy`. */
export type ChangeDetection = 'Watch' | 'Cache' | 'Get';

export interface PodObjectsDeps {
  readonly api: Pick<ApiClient, 'get' | 'list' | 'watch'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly syncFrequencyMs: number;
  /** Annotations of the Node object, if known; they may set the TTL of cached objects. */
  readonly nodeAnnotations: () => Readonly<Record<string, string>> | undefined;
  /** Called when a watched object has changed: the pods that show it should be synced. */
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
        // The initial state is returned to the reader; only later additions, changes and deletions
        // are reported.
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
      return atRest(new CacheStore<T>({ clock, logger, fetch, ttlMs }));
    }
    case 'Get':
      return atRest(directStore(fetch));
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

function atRest<T>(store: ReferredStore<T>): RunningStore<T> {
  return {
    add: (object, pod) => store.add(object, pod),
    remove: (object, pod) => store.remove(object, pod),
    get: (object, signal) => store.get(object, signal),
    run: untilAborted,
  };
}

/** Reads the object from the API on each call. */
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
