import { isApiCode } from '../api/index.ts';
import type { ConfigMap, Secret } from '../kinds/index.ts';
import { KeyedMutex, type Logger } from '../lib/index.ts';
import type { Pod, PodUid } from '../pods/index.ts';
import type { ObjectCopies } from './object-copies.ts';
import type { PodObjects } from './pod-objects.ts';
import { configMapNamesOf, PodReferences, secretNamesOf } from './references.ts';
import { type ObjectName, objectNameKey, type ReferredObject, type ReferredStore } from './referred-store.ts';

export interface CheckpointedObjectsDeps {
  readonly objects: PodObjects;
  readonly copies: ObjectCopies;
  readonly logger: Logger;
}

type Kind = 'secret' | 'configmap';

/**
 * Stores a copy on disk of each object that pods refer to, so that a kubelet that starts without
 * its API server can start their containers. A copy is served until the API server has reported
 * that object once, and is removed with the last pod that refers to it.
 */
export class CheckpointedObjects implements PodObjects {
  readonly #deps: CheckpointedObjectsDeps;
  readonly #secrets: PodReferences<never>;
  readonly #configMaps: PodReferences<never>;
  /** The pods that refer to each object, by the object's key. */
  readonly #pods = new Map<string, Set<PodUid>>();
  /**
   * The last reported state of each object; a key exists once the server has reported the object.
   */
  readonly #reported = new Map<string, string>();
  readonly #mutex = new KeyedMutex<string>();
  readonly #never = new AbortController().signal;

  constructor(deps: CheckpointedObjectsDeps) {
    this.#deps = deps;
    this.#secrets = new PodReferences(this.#counted('secret'), secretNamesOf);
    this.#configMaps = new PodReferences(this.#counted('configmap'), configMapNamesOf);
  }

  register(pod: Pod): void {
    this.#secrets.register(pod);
    this.#configMaps.register(pod);
    this.#deps.objects.register(pod);
  }

  unregister(uid: PodUid): void {
    this.#secrets.unregister(uid);
    this.#configMaps.unregister(uid);
    this.#deps.objects.unregister(uid);
  }

  async secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined> {
    const fetch = () => this.#deps.objects.secret(namespace, name, signal);
    return await this.#read<Secret>(copyKey('secret', { namespace, name }), fetch, signal);
  }

  async configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined> {
    const fetch = () => this.#deps.objects.configMap(namespace, name, signal);
    return await this.#read<ConfigMap>(copyKey('configmap', { namespace, name }), fetch, signal);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#deps.objects.run(signal);
  }

  /**
   * Removes the copies to which no pod refers; called once, when all pods of the node have
   * registered their references.
   */
  async retainReferred(): Promise<void> {
    await this.#deps.copies.retain([...this.#pods.keys()]);
  }

  async #read<T extends ReferredObject>(
    key: string,
    fetch: () => Promise<T | undefined>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      const found = await fetch();
      if (this.#pods.has(key)) this.#store(key, found);
      return found;
    } catch (error) {
      signal.throwIfAborted();
      if (this.#reported.has(key) || isApiCode(error, 'OBJECT_NOT_REGISTERED')) throw error;
      const copy = await this.#deps.copies.read<T>(key);
      if (copy === undefined) throw error;
      this.#deps.logger.warn('Failed to read object from the API server, serving its copy on disk', {
        object: key,
      });
      return copy;
    }
  }

  /** Writes in the background: a lost copy matters only at a start without an API server. */
  #store(key: string, found: ReferredObject | undefined): void {
    const version =
      found === undefined ? 'none' : `${found.metadata?.uid}/${found.metadata?.resourceVersion}`;
    if (this.#reported.get(key) === version) return;
    this.#reported.set(key, version);
    const { copies } = this.#deps;
    this.#runSerially(key, () => (found === undefined ? copies.remove(key) : copies.write(key, found)));
  }

  #runSerially(key: string, work: () => Promise<void>): void {
    this.#mutex.run(key, work, this.#never).catch((error: unknown) => {
      this.#deps.logger.error('Failed to store copy of object', error, { object: key });
    });
  }

  #counted(kind: Kind): ReferredStore<never> {
    return {
      add: (object, pod) => {
        const key = copyKey(kind, object);
        this.#pods.set(key, (this.#pods.get(key) ?? new Set()).add(pod));
      },
      remove: (object, pod) => this.#removePod(copyKey(kind, object), pod),
      get: async () => undefined,
    };
  }

  #removePod(key: string, pod: PodUid): void {
    const pods = this.#pods.get(key);
    if (pods?.delete(pod) !== true || pods.size > 0) return;
    this.#pods.delete(key);
    this.#reported.delete(key);
    // A pod may have registered the object while its copy was being removed: then the copy is
    // written again.
    this.#runSerially(key, async () => {
      if (!this.#pods.has(key)) await this.#deps.copies.remove(key);
    });
  }
}

function copyKey(kind: Kind, object: ObjectName): string {
  return `${kind}/${objectNameKey(object)}`;
}
