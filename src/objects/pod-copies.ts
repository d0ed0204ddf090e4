import { posix } from 'node:path';
import type { Service } from '../kinds/index.ts';
import { type Clock, HintLatch, type Logger } from '../lib/index.ts';
import { isMirrorPod, type Pod, type PodUid } from '../pods/index.ts';
import type { PodConfig, PodListChanges } from '../sources/index.ts';
import { CopiesOnDisk, type CopyFiles, type ObjectCopies } from './object-copies.ts';
import type { ServiceCopies } from './services.ts';

/** The API objects that a node stores for a start without its API server. */
export interface ClusterCopies {
  readonly pods: ObjectCopies;
  /** The copies of secrets and config maps. */
  readonly objects: ObjectCopies;
  readonly services: ServiceCopies;
}

export interface ClusterCopiesOptions {
  readonly files: CopyFiles;
  readonly rootDir: string;
  readonly logger: Logger;
}

/**
 * Creates the stores of copies below the kubelet's root directory, in files that only root can
 * read.
 */
export function clusterCopies({ files, rootDir, logger }: ClusterCopiesOptions): ClusterCopies {
  const copies = (name: string) =>
    new CopiesOnDisk({ files, directory: posix.join(rootDir, 'api-copies', name), logger });
  const services = copies('services');
  return {
    pods: copies('pods'),
    objects: copies('objects'),
    services: {
      read: async () => (await services.read<{ readonly items: readonly Service[] }>('services'))?.items,
      write: (items) => services.write('services', { items }),
    },
  };
}

export interface ApiPodCopiesDeps {
  readonly copies: ObjectCopies;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The copy of a pod is written at most once in this interval. */
const writeEveryMs = 1_000;
const idleMs = 60_000;

/**
 * Copies of the pods that the API assigned to this node. Mirror pods are not stored, because their
 * static pods have manifests.
 */
export class ApiPodCopies {
  readonly #deps: ApiPodCopiesDeps;
  readonly #hints: HintLatch;
  /** Pending writes and removals by pod UID. */
  readonly #dirty = new Map<PodUid, Pod | 'gone'>();
  /**
   * The UIDs in the complete list of pods from the API server. Set until the copies of all pods
   * that are not in this list have been removed.
   */
  #listed: readonly string[] | undefined;

  constructor(deps: ApiPodCopiesDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
  }

  /** The copies of all pods as last written. */
  async read(): Promise<readonly Pod[]> {
    return await this.#deps.copies.all<Pod>();
  }

  /** Records that the API server has delivered the complete list of pods. */
  listed(pods: readonly Pod[]): void {
    const own = pods.filter((pod) => !isMirrorPod(pod));
    this.#dirty.clear();
    this.#listed = own.map(({ metadata }) => metadata.uid);
    this.changed({ removed: [], present: own });
  }

  changed({ removed, present }: PodListChanges): void {
    for (const uid of removed) this.#dirty.set(uid, 'gone');
    for (const pod of present) if (!isMirrorPod(pod)) this.#dirty.set(pod.metadata.uid, pod);
    this.#hints.raise();
  }

  /**
   * Writes changed copies until aborted. A failed write is logged and retried at the next change.
   */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#hints.wait(idleMs, signal);
      await this.#deps.clock.sleep(writeEveryMs, signal);
      this.#hints.clear();
      await this.#write();
    }
  }

  async #write(): Promise<void> {
    const { copies, logger } = this.#deps;
    const [listed, dirty] = [this.#listed, [...this.#dirty]];
    this.#listed = undefined;
    this.#dirty.clear();
    try {
      if (listed !== undefined) await copies.retain(listed);
      for (const [uid, pod] of dirty) await (pod === 'gone' ? copies.remove(uid) : copies.write(uid, pod));
    } catch (error) {
      logger.error('Failed to store copies of API pods', error);
    }
  }
}

/**
 * How long a start waits for the API server before it uses copies; a later response takes
 * precedence over them.
 */
const waitForServerMs = 10_000;
/**
 * The time after the start in which every desired pod is synced and registers its references to
 * secrets and config maps.
 */
const registeredAfterMs = 120_000;

export interface StartFromCopiesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly copies: Pick<ApiPodCopies, 'read'>;
  readonly config: Pick<PodConfig, 'setExpected' | 'isReady'>;
  /** Removes the copies of objects to which no pod refers. */
  readonly retainReferred: () => Promise<void>;
}

/**
 * Starts the pods that the node had when it last reached its API server, if the API server does not
 * respond soon.
 */
export async function startFromCopies(
  { clock, logger, copies, config, retainReferred }: StartFromCopiesDeps,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(waitForServerMs, signal);
  const pods = await copies.read();
  if (config.setExpected('api', pods) === 'expected')
    logger.warn('API server does not respond, starting pods from their copies', {
      pods: pods.length,
    });
  while (!config.isReady('api')) await clock.sleep(waitForServerMs, signal);
  await clock.sleep(registeredAfterMs, signal);
  await retainReferred();
}
