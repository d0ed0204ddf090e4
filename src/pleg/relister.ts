import { type Clock, isKind, KeyedMutex, type Logger, withDeadline } from '../lib/index.ts';
import type { ObservedPod, PodUid, RuntimePod } from '../pods/index.ts';
import { changesBetween, eventsOf, type ItemChange, type PodLifecycleEvent } from './lifecycle-events.ts';
import type { PlegObserver } from './metrics.ts';
import type { PodCache } from './pod-cache.ts';
import { type PodRecord, PodRecords } from './pod-records.ts';
import type { RuntimeLister } from './runtime-events.ts';

export interface RelisterDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: RuntimeLister;
  readonly cache: PodCache;
  readonly metrics?: PlegObserver | undefined;
  /** Queues a lifecycle event; returns whether there was capacity. */
  readonly deliver: (event: PodLifecycleEvent) => boolean;
  /**
   * Called when a relist has found changes of a pod, with all these changes and the timestamp of
   * the last listing before them.
   */
  readonly changed: (changes: readonly ItemChange[], unchangedAt: number) => void;
  /** Called for each pod whose inspection failed. */
  readonly failed: (uid: PodUid) => void;
  readonly limits: RelistLimits;
}

export interface RelistLimits {
  /** The maximum duration of listing all pods. */
  readonly listMs: number;
  /** The maximum duration of a relist of one pod. */
  readonly inspectMs: number;
  /** The maximum number of concurrent inspections. */
  readonly inspections: number;
}

const firstListTimeoutMs = 15_000;

/**
 * Lists pods, compares them with the previous listing and updates the cache. Relists of the same
 * pod are serialized; relists of different pods, or of all pods, are concurrent. Of two listings of
 * a pod the one that started later counts.
 */
export class Relister {
  readonly records = new PodRecords();
  readonly #deps: RelisterDeps;
  readonly #inspecting = new KeyedMutex<PodUid>();
  #lastStartMs: number | undefined;
  /**
   * The start of the newest complete listing, as a strictly increasing timestamp and in monotonic
   * milliseconds.
   */
  #lastListed: { readonly stamp: number; readonly ms: number } | undefined;
  #logged: 'no' | 'yes' = 'no';
  /**
   * The timeout of the next listing: short, so that one lost response costs little time, and
   * doubled while the runtime is slow.
   */
  #listTimeoutMs = firstListTimeoutMs;

  constructor(deps: RelisterDeps) {
    this.#deps = deps;
  }

  get lastListed(): { readonly stamp: number; readonly ms: number } | undefined {
    return this.#lastListed;
  }

  /**
   * Relists all pods. A failed listing changes nothing. Rejects only when the signal is aborted.
   */
  async relist(signal: AbortSignal): Promise<'listed' | 'failed'> {
    const { clock, metrics } = this.#deps;
    const stamp = clock.stamp();
    const startMs = clock.monotonicMs();
    const sinceLastMs = this.#lastStartMs === undefined ? undefined : startMs - this.#lastStartMs;
    this.#lastStartMs = startMs;
    try {
      const pods = await this.#list(signal);
      if (pods === undefined) return 'failed';
      await this.#apply(pods, stamp, startMs, signal);
      return 'listed';
    } finally {
      metrics?.relisted(clock.monotonicMs() - startMs, sinceLastMs);
    }
  }

  /**
   * Relists one pod. A result `absent` does not remove the pod from the cache: only a listing of
   * all pods does, because an incomplete listing by label must not drop the state of a running pod.
   */
  async relistPod(uid: PodUid, signal: AbortSignal): Promise<'seen' | 'absent' | 'failed'> {
    const { clock, runtime, cache, limits, metrics } = this.#deps;
    const stamp = clock.stamp();
    const startMs = clock.monotonicMs();
    try {
      const options = { clock, ms: limits.inspectMs, what: 'list a pod' };
      const pod = await withDeadline(options, (inner) => runtime.listPod(uid, inner), signal);
      if (pod === undefined) return this.#podMissing(uid);
      await this.#reconcile(uid, pod, stamp, signal);
      cache.setObserved(uid, stamp);
      return 'seen';
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.error('Failed to list pod', error, { podUid: uid });
      return 'failed';
    } finally {
      metrics?.podRelisted(clock.monotonicMs() - startMs);
    }
  }

  #podMissing(uid: PodUid): 'absent' {
    if (this.records.get(uid) !== undefined)
      this.#deps.log.v(2)?.info('Pod is missing in the runtime, waiting for a relist of all pods', {
        podUid: uid,
      });
    return 'absent';
  }

  async #list(signal: AbortSignal): Promise<readonly RuntimePod[] | undefined> {
    const { clock, log, runtime, limits } = this.#deps;
    try {
      const options = { clock, ms: Math.min(this.#listTimeoutMs, limits.listMs), what: 'list all pods' };
      const pods = await withDeadline(options, (inner) => runtime.listPods(inner), signal);
      this.#listTimeoutMs = firstListTimeoutMs;
      if (this.#logged === 'yes') log.info('Listing pods succeeded again');
      this.#logged = 'no';
      return pods;
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'DeadlineExceeded'))
        this.#listTimeoutMs = Math.min(this.#listTimeoutMs * 2, limits.listMs);
      // Logs only the first failed relist, because relists of an unavailable runtime fail every
      // second.
      if (this.#logged === 'no') log.error('Failed to list pods', error);
      this.#logged = 'yes';
      return undefined;
    }
  }

  async #apply(
    pods: readonly RuntimePod[],
    stamp: number,
    startMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { cache, clock, limits, metrics } = this.#deps;
    const unchangedAt = this.#lastListed?.stamp;
    this.#lastListed = { stamp, ms: startMs };
    metrics?.listed(clock.now());
    const listed = new Map(pods.map((pod) => [pod.uid, pod]));
    const uids = new Set([...listed.keys(), ...this.records.uids()]);
    await forEachBounded([...uids], limits.inspections, (uid) =>
      this.#reconcile(uid, listed.get(uid), stamp, signal, unchangedAt),
    );
    metrics?.counted(this.records.tally);
    // The timestamp of the complete relist is set only after all entries are stored.
    cache.setGlobal(stamp);
  }

  async #reconcile(
    uid: PodUid,
    listed: RuntimePod | undefined,
    stamp: number,
    signal: AbortSignal,
    unchangedAt = this.#lastListed?.stamp,
  ): Promise<void> {
    using _alone = await this.#inspecting.acquire(uid, signal);
    const seenAt = this.records.get(uid)?.stamp ?? unchangedAt;
    const record = this.records.list(uid, listed, stamp);
    if (record === undefined) return;
    const changes = changesBetween(record.reported, listed);
    if (changes.length === 0 && !record.reinspect) {
      if (listed === undefined) this.records.setReported(uid, record);
      return;
    }
    if (changes.length > 0) {
      this.#deps.metrics?.counted(this.records.tally);
      this.#deps.changed(changes, seenAt ?? Number.NEGATIVE_INFINITY);
    }
    if (!(await this.#update(uid, record, signal))) return;
    this.records.setReported(uid, record);
    if (changes.length === 0) this.#deps.deliver({ type: 'PodSync', uid });
    let isAsked = false;
    for (const event of eventsOf(uid, changes)) {
      const isHeard = this.#deps.deliver(isAsked ? { ...event, sync: 'requested' } : event);
      isAsked ||= isHeard && event.type !== 'ContainerRemoved';
    }
  }

  /** Inspects the pod if necessary; returns whether the cache has the listed state. */
  async #update(uid: PodUid, { listed, stamp }: PodRecord, signal: AbortSignal): Promise<boolean> {
    const { cache, clock, runtime, limits } = this.#deps;
    if (listed === undefined) {
      cache.delete(uid);
      return true;
    }
    try {
      const options = { clock, ms: limits.inspectMs, what: `inspect pod ${listed.name}` };
      const pod = await withDeadline(options, (inner) => runtime.observe(listed, inner), signal);
      cache.set(uid, { kind: 'seen', pod: withKeptIps(pod, cache.lastObserved(uid)) }, stamp);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      this.#fail(uid, listed, error, stamp);
      return false;
    }
  }

  /**
   * A failed inspection does not change the listing with which the next relist is compared, so the
   * next relist finds the same change again.
   */
  #fail(uid: PodUid, { name, namespace }: RuntimePod, error: unknown, stamp: number): void {
    this.#deps.log.error('Failed to inspect pod', error, { pod: `${name}_${namespace}`, podUid: uid });
    this.#deps.cache.set(uid, { kind: 'failed', error }, stamp);
    this.records.reinspect(uid);
    this.#deps.failed(uid);
  }
}

/** The last IP addresses of a pod whose sandbox was removed are kept for its status. */
function withKeptIps(pod: ObservedPod, before: ObservedPod | undefined): ObservedPod {
  const keeps =
    pod.ips.length === 0 && before !== undefined && !pod.sandboxes.some(({ state }) => state === 'ready');
  return keeps ? { ...pod, ips: before.ips } : pod;
}

/**
 * Calls the work function for each item with limited concurrency, in order. Waits for all items,
 * then throws the first failure.
 */
async function forEachBounded<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const lane = async () => {
    for (const item of left) {
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
}
