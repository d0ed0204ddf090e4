import { type ApiClient, type ApiObject, apiResources, apiVersionOf, isApiCode } from '../../api/index.ts';
import type { Node, OwnerReference } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger, LruMap, type Random } from '../../lib/index.ts';
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
  /** This node as the API last had it; undefined before it is registered. */
  readonly node: () => Node | undefined;
  /** The static pod that is wanted under the name, and the mirror of that name that the watch has brought. */
  readonly pairOf: (name: PodFullName) => { readonly pod: Pod | undefined; readonly mirror: Pod | undefined };
  /** Whether an earlier static pod of that name is still being ended. */
  readonly isEnding: (name: PodFullName) => boolean;
}

/** What we made ourselves and the watch has not shown yet. */
interface Made {
  readonly mirror: Pod;
  readonly atMs: number;
}

const parallel = 4;
const policy = { baseMs: 500, factor: 2, maxMs: 30_000, jitter: 0.2, resetAfterMs: 120_000 };
const nodePollMs = 100;
const leavingNodePollMs = 10_000;
const endingPollMs = 1_000;
/** A watch that has not shown by then what we made has missed it. */
const watchLagMs = 10_000;

/**
 * Keeps one mirror pod in the API for each static pod, so that users see it there. Nothing that happens to a mirror
 * touches a container, and no pod waits for its mirror: all of it is done here, name by name, in the background.
 */
export class MirrorPods {
  readonly #deps: MirrorPodsDeps;
  readonly #queue: RetryQueue<PodFullName>;
  readonly #made = new LruMap<PodFullName, Made>({ capacity: 1_000 });
  /** Mirrors that are to be replaced, by their ids. */
  readonly #outlived = new LruMap<PodFullName, PodUid>({ capacity: 1_000 });

  constructor(deps: MirrorPodsDeps) {
    this.#deps = deps;
    const { clock, random } = deps;
    const work = (name: PodFullName, signal: AbortSignal) => this.#work(name, signal);
    const failed = (failure: FailedTry<PodFullName>) => this.#failed(failure);
    this.#queue = new RetryQueue({ clock, random, policy, parallel, work, failed });
  }

  /** Names that wait to be looked at, or are being so. */
  get pending(): number {
    return this.#queue.pending;
  }

  /** Works until it is aborted, and then throws the signal's reason. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
  }

  /**
   * Looks at the name soon: its static pod came, changed, was synced, ended or went, or its mirror did. Never waits; may
   * be called as often as one likes.
   */
  look(name: PodFullName): void {
    this.#queue.add(name);
  }

  /** The mirror cannot be told how its static pod is now, which began anew: another one takes its place. */
  replace(mirror: Pod): void {
    const name = fullNameOf(mirror);
    this.#outlived.set(name, mirror.metadata.uid);
    this.look(name);
  }

  /** The API answers again: what waits because of failures need not wait any longer. */
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
    else await this.#carryOut(name, plan, signal);
  }

  async #carryOut(name: PodFullName, plan: MirrorPlan, signal: AbortSignal): Promise<void> {
    if (plan.do === 'delete' || plan.do === 'replace') {
      const isDone = await this.#delete(plan.mirror, plan.why, signal);
      this.#made.delete(name);
      this.#outlived.delete(name);
      // Somebody was faster: what is there now, the watch will tell.
      if (!isDone) return this.#queue.add(name, watchLagMs);
    }
    if (plan.do === 'create' || plan.do === 'replace') await this.#create(name, plan.pod, signal);
  }

  /** A mirror of our own making counts until the watch shows it, or should have done so. */
  #newest(name: PodFullName, watched: Pod | undefined): Pod | undefined {
    const made = this.#made.peek(name);
    if (made === undefined) return watched;
    const isSeen = watched?.metadata.uid === made.mirror.metadata.uid;
    const isLost = this.#deps.clock.monotonicMs() - made.atMs >= watchLagMs;
    if (!isSeen && !isLost) return made.mirror;
    this.#made.delete(name);
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
      mirror = await this.#whoHasTheName(pod, error, signal);
    }
    this.#made.set(name, { mirror, atMs: clock.monotonicMs() });
    // Should the watch miss it, or it vanish unseen, this is found out then.
    this.#queue.add(name, watchLagMs);
    logger.v(2)?.info('A static pod has its mirror in the API', {
      pod: describePod(pod),
      mirrorUid: mirror.metadata.uid,
    });
  }

  /** One that shows this very pod is as good as ours; any other mirror makes room, and then it is tried again. */
  async #whoHasTheName(pod: Pod, refused: unknown, signal: AbortSignal): Promise<Pod> {
    const { namespace, name } = pod.metadata;
    const ref = { resource: apiResources.pods, namespace, name };
    const found = await this.#deps.api.get<Pod>(ref, {}, signal);
    if (isMirrorPodOf(found, pod) && found.metadata.deletionTimestamp === undefined) return found;
    if (isMirrorPod(found)) await this.#delete(found, 'it has the name of another one to be made', signal);
    throw refused;
  }

  #owner(name: PodFullName): KnownNode | undefined {
    const node = this.#deps.node();
    const owner = ownerNode(node);
    if (owner === undefined) this.#queue.add(name, node === undefined ? nodePollMs : leavingNodePollMs);
    return owner;
  }

  /** Whether it was this call that did it. */
  async #delete(mirror: Pod, why: string, signal: AbortSignal): Promise<boolean> {
    const { namespace, name, uid } = mirror.metadata;
    this.#deps.logger.v(2)?.info('Removing a mirror pod', { pod: describePod(mirror), why });
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
    if (failures === 1) this.#deps.logger.warn('Cannot bring the mirror of a static pod in order', fields);
    else this.#deps.logger.v(3)?.info('Still cannot bring the mirror of a static pod in order', fields);
  }
}

/** All names there is anything to do for, such as when the node has just been registered. */
export function mirrorNames(pods: {
  readonly pods: readonly Pod[];
  readonly mirrorPods: readonly Pod[];
}): ReadonlySet<PodFullName> {
  return new Set([...pods.pods.filter(isStaticPod), ...pods.mirrorPods].map(fullNameOf));
}

/** What a node needs to be known by before it can own anything. */
export interface KnownNode {
  readonly name: string;
  readonly uid: string;
}

/** The node as an owner; undefined while the API has not named it, or when it is about to go. */
export function ownerNode(node: Node | undefined): KnownNode | undefined {
  const { name, uid, deletionTimestamp } = node?.metadata ?? {};
  if (name === undefined || uid === undefined || uid === '' || deletionTimestamp !== undefined)
    return undefined;
  return { name, uid };
}

/**
 * The shadow of a static pod in the API: the same pod, marked with the version of it that it shows and owned by the node
 * alone, as an API server demands of the pods a node makes.
 */
export function mirrorObject({ metadata, spec }: Pod, owner: KnownNode): ApiObject {
  const { name, namespace, labels, annotations: written = {} } = metadata;
  const { kind } = apiResources.pods;
  const mark = { [annotations.mirror]: written[annotations.hash] ?? '' };
  const made = {
    name,
    namespace,
    ...(labels !== undefined && { labels }),
    annotations: { ...written, ...mark },
    ownerReferences: [ownerReference(owner)],
  };
  return { apiVersion: apiVersionOf(apiResources.pods), kind, metadata: made, spec } as ApiObject;
}

function ownerReference({ name, uid }: KnownNode): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true };
}
