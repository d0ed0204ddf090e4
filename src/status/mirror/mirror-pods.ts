import { type ApiClient, type ApiObject, apiResources, apiVersionOf, isApiCode } from '../../api/index.ts';
import type { Node, OwnerReference } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger, LruMap, type Random } from '../../lib/index.ts';
import type { PodManager } from '../../pods/index.ts';
import {
  annotations,
  describePod,
  fullNameOf,
  isMirrorPod,
  isMirrorPodOf,
  isStaticPod,
  type Pod,
  type PodFullName,
  type PodUid,
} from '../../pods/index.ts';
import { type FailedTry, RetryQueue } from '../retry-queue.ts';
import { type MirrorPlan, planMirror } from './plan-mirror.ts';

export interface MirrorPodsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly api: Pick<ApiClient, 'create' | 'get' | 'delete'>;
  /**
   * Returns the Node object as last read from the API server; undefined before the node is
   * registered.
   */
  readonly node: () => Node | undefined;
  /** Returns the desired static pod with the name, and its mirror pod as delivered by the watch. */
  readonly pairOf: (name: PodFullName) => { readonly pod: Pod | undefined; readonly mirror: Pod | undefined };
  /** Whether an earlier static pod with the name is still terminating. */
  readonly isEnding: (name: PodFullName) => boolean;
}

/** A created mirror pod that the watch has not delivered. */
interface CreatedMirror {
  readonly mirror: Pod;
  readonly atMs: number;
}

const parallel = 4;
const policy = { baseMs: 500, factor: 2, maxMs: 30_000, jitter: 0.2, resetAfterMs: 120_000 };
const nodePollMs = 100;
const leavingNodePollMs = 10_000;
const endingPollMs = 1_000;
/**
 * Time after which a created mirror pod that the watch has not delivered counts as missed by the
 * watch.
 */
const watchLagMs = 10_000;

/**
 * Maintains one mirror pod in the API server for each static pod, so that users see it there.
 * Changes of a mirror pod never affect a container, and no pod waits for its mirror: each name is
 * reconciled in the background.
 */
export class MirrorPods {
  readonly #deps: MirrorPodsDeps;
  readonly #queue: RetryQueue<PodFullName>;
  readonly #created = new LruMap<PodFullName, CreatedMirror>({ capacity: 1_000 });
  /** UIDs of mirror pods to replace, by full name. */
  readonly #outlived = new LruMap<PodFullName, PodUid>({ capacity: 1_000 });

  constructor(deps: MirrorPodsDeps) {
    this.#deps = deps;
    const { clock, random } = deps;
    const reconcileOne = (name: PodFullName, signal: AbortSignal) => this.#work(name, signal);
    const failed = (failure: FailedTry<PodFullName>) => this.#failed(failure);
    this.#queue = new RetryQueue({ clock, random, policy, parallel, work: reconcileOne, failed });
  }

  /** Number of names that are queued or being reconciled. */
  get pending(): number {
    return this.#queue.pending;
  }

  /**
   * Reconciles queued names until the signal is aborted, then rejects with its reason. Call it
   * once.
   */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
  }

  /**
   * Queues the name, because its static pod was added, changed, synced, terminated or removed, or
   * its mirror pod changed. Returns immediately; may be called any number of times.
   */
  reconcile(name: PodFullName): void {
    this.#queue.add(name);
  }

  /**
   * Replaces the mirror pod of a static pod that has started again, because the mirror pod can only
   * show the final status of the earlier instance.
   */
  replace(mirror: Pod): void {
    const name = fullNameOf(mirror);
    this.#outlived.set(name, mirror.metadata.uid);
    this.reconcile(name);
  }

  /** Retries names in back-off immediately, because the API server is reachable again. */
  reconnected(): void {
    this.#queue.reconnected();
  }

  async #work(name: PodFullName, signal: AbortSignal): Promise<void> {
    const { pairOf, isEnding } = this.#deps;
    const { pod, mirror } = pairOf(name);
    const newest = this.#newest(name, mirror);
    const outlived = this.#outlived.peek(name);
    const plan = planMirror({
      pod,
      mirror: newest,
      isEnding: isEnding(name),
      isOutlived: outlived !== undefined && newest?.metadata.uid === outlived,
    });
    if (plan.do === 'wait') this.#queue.add(name, endingPollMs);
    else await this.#execute(name, plan, signal);
  }

  async #execute(name: PodFullName, plan: MirrorPlan, signal: AbortSignal): Promise<void> {
    if (plan.do === 'delete' || plan.do === 'replace') {
      const isDone = await this.#delete(plan.mirror, plan.why, signal);
      this.#created.delete(name);
      this.#outlived.delete(name);
      // If another client has already deleted or replaced the mirror pod, the watch delivers this
      // change; the name is reconciled again later.
      if (!isDone) return this.#queue.add(name, watchLagMs);
    }
    if (plan.do === 'create' || plan.do === 'replace') await this.#create(name, plan.pod, signal);
  }

  /**
   * The newest known mirror pod: one created by this process counts as existing until the watch
   * delivers it or its delivery is overdue.
   */
  #newest(name: PodFullName, watched: Pod | undefined): Pod | undefined {
    const created = this.#created.peek(name);
    if (created === undefined) return watched;
    const isWatched = watched?.metadata.uid === created.mirror.metadata.uid;
    const isLost = this.#deps.clock.monotonicMs() - created.atMs >= watchLagMs;
    if (!isWatched && !isLost) return created.mirror;
    this.#created.delete(name);
    return watched;
  }

  async #create(name: PodFullName, pod: Pod, signal: AbortSignal): Promise<void> {
    const owner = this.#owner(name);
    if (owner === undefined) return;
    const { api, clock, logger } = this.#deps;
    const at = { resource: apiResources.pods, namespace: pod.metadata.namespace };
    let mirror: Pod;
    try {
      mirror = await api.create<Pod>(at, mirrorObject(pod, owner), signal);
    } catch (error) {
      if (!isApiCode(error, 'API_CONFLICT')) throw error;
      mirror = await this.#adoptOrRemove(pod, error, signal);
    }
    this.#created.set(name, { mirror, atMs: clock.monotonicMs() });
    // The name is queued again to detect a mirror pod that the watch missed or that was deleted
    // unobserved.
    this.#queue.add(name, watchLagMs);
    logger.v(2)?.info('Created mirror pod', {
      pod: describePod(pod),
      mirrorUid: mirror.metadata.uid,
    });
  }

  /**
   * Adopts an existing mirror pod with the same hash. Deletes a mirror pod with another hash, so
   * that a retry can create the new one; an ordinary pod with the name is kept.
   */
  async #adoptOrRemove(pod: Pod, refused: unknown, signal: AbortSignal): Promise<Pod> {
    const { namespace, name } = pod.metadata;
    const ref = { resource: apiResources.pods, namespace, name };
    const found = await this.#deps.api.get<Pod>(ref, {}, signal);
    if (isMirrorPodOf(found, pod) && found.metadata.deletionTimestamp === undefined) return found;
    if (isMirrorPod(found)) await this.#delete(found, 'it has the name of a mirror to be created', signal);
    throw refused;
  }

  #owner(name: PodFullName): KnownNode | undefined {
    const node = this.#deps.node();
    const owner = ownerNode(node);
    if (owner === undefined) this.#queue.add(name, node === undefined ? nodePollMs : leavingNodePollMs);
    return owner;
  }

  /** Deletes the mirror pod; returns whether this call deleted it. */
  async #delete(mirror: Pod, why: string, signal: AbortSignal): Promise<boolean> {
    const { namespace, name, uid } = mirror.metadata;
    this.#deps.logger.v(2)?.info('Deleting mirror pod', { pod: describePod(mirror), why });
    const ref = { resource: apiResources.pods, namespace, name };
    try {
      await this.#deps.api.delete(ref, { gracePeriodSeconds: 0, uid }, signal);
      return true;
    } catch (error) {
      if (!isApiCode(error, 'API_NOT_FOUND', 'API_CONFLICT')) throw error;
      return false;
    }
  }

  #failed({ key: name, error, failures, nextTryMs }: FailedTry<PodFullName>): void {
    const fields = { pod: name, error: describeError(error), nextTryMs };
    if (failures === 1) this.#deps.logger.warn('Failed to reconcile mirror pod', fields);
    else this.#deps.logger.v(3)?.info('Still failing to reconcile mirror pod', fields);
  }
}

/**
 * Returns all names of mirror and static pods to reconcile, for example after the registration of
 * the node.
 */
export function mirrorNames(pods: {
  readonly pods: readonly Pod[];
  readonly mirrorPods: readonly Pod[];
}): ReadonlySet<PodFullName> {
  return new Set([...pods.pods.filter(isStaticPod), ...pods.mirrorPods].map(fullNameOf));
}

/** Name and UID of a node, needed for owner references. */
export interface KnownNode {
  readonly name: string;
  readonly uid: string;
}

/**
 * Returns the node for an owner reference; undefined before the API server has assigned its UID, or
 * while the node is being deleted.
 */
function ownerNode(node: Node | undefined): KnownNode | undefined {
  const { name, uid, deletionTimestamp } = node?.metadata ?? {};
  if (name === undefined || uid === undefined || uid === '' || deletionTimestamp !== undefined)
    return undefined;
  return { name, uid };
}

/**
 * Returns the mirror pod of a static pod: the same pod with its hash as annotation, owned only by
 * the node, as API servers require of pods created by nodes.
 */
function mirrorObject({ metadata, spec }: Pod, owner: KnownNode): ApiObject {
  const { name, namespace, labels, annotations: written = {} } = metadata;
  const { kind } = apiResources.pods;
  const mark = { [annotations.mirror]: written[annotations.hash] ?? '' };
  const object = {
    name,
    namespace,
    ...(labels !== undefined && { labels }),
    annotations: { ...written, ...mark },
    ownerReferences: [ownerReference(owner)],
  };
  return { apiVersion: apiVersionOf(apiResources.pods), kind, metadata: object, spec } as ApiObject;
}

function ownerReference({ name, uid }: KnownNode): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true };
}

const readyPollMs = 100;
const reconcileAllMs = 10_000;

/** Reconciles all mirror pods once all sources are ready, and periodically after that. */
export async function followMirrors(
  clock: Clock,
  { config, pods }: { readonly config: { allReady(): boolean }; readonly pods: PodManager },
  mirrors: Pick<MirrorPods, 'reconcile'>,
  signal: AbortSignal,
): Promise<void> {
  while (!config.allReady()) await clock.sleep(readyPollMs, signal);
  for (;;) {
    for (const name of mirrorNames(pods.getPodsAndMirrorPods())) mirrors.reconcile(name);
    await clock.sleep(reconcileAllMs, signal);
  }
}
