import { type ApiClient, isApiCode, type PatchSchema } from '../../api/index.ts';
import type { ContainerStatus, PodStatus } from '../../kinds/index.ts';
import type { MetricRegistry } from '../../lib/index.ts';
import { type Clock, describeError, type Logger, type Random } from '../../lib/index.ts';
import { isMirrorPod, isTerminalPhase, type Pod, type PodUid } from '../../pods/index.ts';
import { type FailedTry, RetryQueue } from '../retry-queue.ts';
import type { StatusSource, VersionedStatus } from '../status-manager.ts';
import { type Agreement, isDueForRemoval, type SyncOutcome, syncStatus } from './sync-status.ts';

export interface StatusWriterDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly api: Pick<ApiClient, 'get' | 'patch' | 'delete'>;
  readonly statuses: StatusSource;
  /**
   * Returns the API object to which a pod's status is written, as last delivered by a watch: the
   * pod itself, or the mirror pod of a static pod. Undefined when the API server has none; then
   * nothing is written.
   */
  readonly podOf: (uid: PodUid) => Pod | undefined;
  /**
   * Whether a container of the pod may still run: true for all pods except those known to have
   * terminated.
   */
  readonly mayRun: (uid: PodUid) => boolean;
  /** Schema used to compute strategic merge patches. */
  readonly schema: PatchSchema;
  readonly observer?: StatusWriterObserver | undefined;
  /**
   * Called for a mirror pod with the final status of a static pod that started again with the same
   * UID: the API server does not allow a terminal phase to be reverted, so the mirror pod must be
   * replaced.
   */
  readonly outlived?: ((mirror: Pod) => void) | undefined;
}

/** What this process knows about a pod's status in the API server. */
interface Written {
  /** UID of the object that the status was written to; a static pod may get another mirror pod. */
  readonly apiUid: PodUid;
  /**
   * The cached status that the API server is known to have; any other cached status must be
   * written.
   */
  readonly entry: VersionedStatus;
  /** The pod, as delivered by the watch, with which the status was last compared. */
  readonly watched: Pod;
  /** The pod in the response of the API server; undefined after the watch has delivered it. */
  readonly response: Pod | undefined;
  readonly isHeld: boolean;
  readonly agreement: Agreement;
}

const outcomes = {
  gone: 'Pod deleted from API, not writing status',
  replaced: 'API has another pod of that name, dropping status',
  removed: 'Deleted terminated pod from API',
} as const;

const parallel = 8;
/** Maximum time that a status of a starting pod waits for the next change before it is written. */
const startingDelayMs = 500;
const compareMs = 10_000;
const policy = { baseMs: 250, factor: 2, maxMs: 10_000, jitter: 0.2, resetAfterMs: 60_000 };

/**
 * Writes pod statuses to the API server and deletes terminated pods from it. No other component
 * does.
 *
 * The statuses of one pod are written serially, always the newest; up to eight pods concurrently. A
 * status is compared with the pod delivered by the watch, so that an unchanged one costs no call.
 * The starting state, which most pods leave within a fraction of a second, is written only if it
 * lasts longer. All statuses are compared every ten seconds: another client may have overwritten
 * one, and a pod that could not be reported as terminated may have terminated.
 */
export class StatusWriter {
  readonly #deps: StatusWriterDeps;
  readonly #queue: RetryQueue<PodUid>;
  readonly #written = new Map<PodUid, Written>();

  constructor(deps: StatusWriterDeps) {
    this.#deps = deps;
    const { clock, random } = deps;
    const work = (uid: PodUid, signal: AbortSignal) => this.#send(uid, signal);
    const failed = (failure: FailedTry<PodUid>) => this.#failed(failure);
    this.#queue = new RetryQueue({ clock, random, policy, parallel, work, failed });
  }

  /** Number of pods whose status is queued, compared or written. */
  get pending(): number {
    return this.#queue.pending;
  }

  /**
   * Number of pods with write state; exceeds the number of statuses for at most ten seconds after a
   * status was removed.
   */
  get size(): number {
    return this.#written.size;
  }

  /** Writes statuses until the signal is aborted, then rejects with its reason. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    this.#compareAll();
    await Promise.all([this.#follow(signal), this.#comparePeriodically(signal), this.#queue.run(signal)]);
  }

  /**
   * Whether the API server has the cached status of the pod; also true when the API server does not
   * have the pod.
   */
  isWritten(uid: PodUid): boolean {
    const { podOf, statuses } = this.#deps;
    if (podOf(uid) === undefined) return true;
    const entry = statuses.entry(uid);
    const written = this.#written.get(uid);
    return entry === undefined || (written?.entry === entry && !written.isHeld);
  }

  /**
   * Compares the pod's status immediately, because its API object has changed or is new, for
   * example the mirror pod of a static pod.
   */
  compare(uid: PodUid): void {
    this.#queue.add(uid);
  }

  /**
   * Writes the status of a static pod when its mirror pod has appeared without one, without waiting
   * for a change.
   */
  mirrored(uid: PodUid): void {
    const mirror = this.#deps.podOf(uid);
    if (mirror !== undefined && mirror.status.conditions === undefined) this.compare(uid);
  }

  /** Retries pods in back-off immediately, because the API server is reachable again. */
  reconnected(): void {
    this.#queue.reconnected();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const { uid, after } of this.#deps.statuses.changes().items(signal))
      this.#queue.add(uid, isPassing(after) ? startingDelayMs : 0);
  }

  async #comparePeriodically(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(compareMs, signal);
      this.#compareAll();
    }
  }

  #compareAll(): void {
    const { statuses } = this.#deps;
    for (const uid of this.#written.keys()) if (statuses.entry(uid) === undefined) this.#forget(uid);
    for (const entry of statuses.entries()) {
      if (this.#mayDiffer(entry)) this.compare(entry.uid);
      if (!isTerminalPhase(entry.status.phase)) this.#reportOutlived(entry, 'if-over');
    }
  }

  /**
   * Reports an outdated mirror pod only after a delay, because right after a kubelet start the
   * final states of pods have not been observed.
   */
  #reportOutlived({ uid, changedAtMs }: VersionedStatus, when: 'if-over' | 'always'): void {
    const { podOf, clock, outlived } = this.#deps;
    const pod = podOf(uid);
    if (pod === undefined || !isMirrorPod(pod) || clock.monotonicMs() - changedAtMs < compareMs) return;
    if (when === 'always' || isTerminalPhase(pod.status.phase)) outlived?.(pod);
  }

  /**
   * A cheap check whether the status may differ from the one in the API; it may return true for an
   * equal status, but never false for a different one.
   */
  #mayDiffer(entry: VersionedStatus): boolean {
    const pod = this.#deps.podOf(entry.uid);
    if (pod === undefined) return false;
    const written = this.#caughtUp(entry.uid, pod);
    const isAsWritten = written?.entry === entry && written.watched === pod && !written.isHeld;
    return !isAsWritten || isDueForRemoval(pod, entry);
  }

  /**
   * Replaces the stored response by the pod of the watch when both are equal, so that only one copy
   * is kept. A watch event that is equal to the response is no change.
   */
  #caughtUp(uid: PodUid, pod: Pod): Written | undefined {
    const written = this.#written.get(uid);
    const { response } = written ?? {};
    if (written === undefined || response === undefined || !isSameCopy(response, pod)) return written;
    const caughtUp = { ...written, watched: pod, response: undefined };
    this.#written.set(uid, caughtUp);
    return caughtUp;
  }

  async #send(uid: PodUid, signal: AbortSignal): Promise<void> {
    const entry = this.#deps.statuses.entry(uid);
    const watched = this.#deps.podOf(uid);
    if (entry === undefined) this.#written.delete(uid);
    if (entry === undefined || watched === undefined) return;
    const before = this.#written.get(uid);
    const isSame = before?.apiUid === watched.metadata.uid;
    const known = newestCopy(watched, isSame ? before?.response : undefined);
    // A status that differs from the one in the API only in condition times, which a kubelet
    // restart loses, counts as equal until it changes.
    const isAlike = before?.entry === entry && before.agreement === 'but-for-times';
    const turn = isSame && !isAlike ? 'later' : 'first';
    const outcome = await syncStatus(this.#deps, { entry, known, turn }, signal);
    this.#record(entry, watched, outcome);
  }

  #record(entry: VersionedStatus, watched: Pod, outcome: SyncOutcome): void {
    const { uid } = entry;
    const { clock, observer, statuses, logger } = this.#deps;
    if (outcome.kind === 'in-step') {
      if (outcome.isPatched) observer?.synced(clock.monotonicMs() - entry.changedAtMs);
      const { pod, isHeld, agreement } = outcome;
      const answered = pod === watched ? undefined : pod;
      const apiUid = watched.metadata.uid;
      this.#written.set(uid, { apiUid, entry, watched, response: answered, isHeld, agreement });
      return;
    }
    this.#written.delete(uid);
    // The status of a static pod is kept when its mirror pod is deleted, because it is written to
    // the next mirror pod. The status of a deleted pod is kept while its worker still terminates
    // the pod.
    const isOver = outcome.kind !== 'gone' && watched.metadata.uid === uid;
    if (isOver && statuses.entry(uid)?.version === entry.version) statuses.forget(uid);
    logger.v(3)?.info(outcomes[outcome.kind], { pod: `${entry.name}_${entry.namespace}`, podUid: uid });
  }

  #failed({ key: uid, error, failures, nextTryMs }: FailedTry<PodUid>): void {
    const { statuses, logger } = this.#deps;
    const entry = statuses.entry(uid);
    if (entry !== undefined && isApiCode(error, 'API_INVALID')) this.#reportOutlived(entry, 'always');
    const { name = uid, namespace = '' } = entry ?? {};
    const fields = { pod: `${name}_${namespace}`, podUid: uid, error: describeError(error), nextTryMs };
    if (failures === 1) logger.warn('Failed to write pod status', fields);
    else logger.v(3)?.info('Still failing to write pod status', fields);
  }

  #forget(uid: PodUid): void {
    this.#written.delete(uid);
    this.#queue.forget(uid);
  }
}

/**
 * Returns the newer of two copies of one API object: from the watch and from a response. A watch
 * lags behind calls, and compared with an old copy a changed status may seem unchanged. Versions
 * that are not numbers cannot be compared; then the copy of the watch is used, which is eventually
 * correct.
 */
export function newestCopy(watched: Pod, response: Pod | undefined): Pod {
  if (response === undefined || response.metadata.uid !== watched.metadata.uid) return watched;
  const [watchedVersion, responseVersion] = [versionOf(watched), versionOf(response)];
  return watchedVersion !== undefined && responseVersion !== undefined && responseVersion > watchedVersion
    ? response
    : watched;
}

function versionOf({ metadata: { resourceVersion } }: Pod): bigint | undefined {
  return resourceVersion !== undefined && /^\d{1,30}$/.test(resourceVersion)
    ? BigInt(resourceVersion)
    : undefined;
}

function isSameCopy({ metadata: one }: Pod, { metadata: other }: Pod): boolean {
  return one.uid === other.uid && one.resourceVersion === other.resourceVersion;
}

const startingReasons: ReadonlySet<string | undefined> = new Set(['ContainerCreating', 'PodInitializing']);

/**
 * Whether the status only reports that the pod is starting: no container has run and none has
 * failed.
 */
function isPassing(status: PodStatus): boolean {
  const { phase, reason, containerStatuses = [], initContainerStatuses = [] } = status;
  const isAwaited = ({ state, lastState }: ContainerStatus) =>
    startingReasons.has(state?.waiting?.reason) && lastState?.terminated === undefined;
  return (
    phase === 'Pending' &&
    reason === undefined &&
    [...containerStatuses, ...initContainerStatuses].every(isAwaited)
  );
}

/** Observes how long it took to write statuses; its methods never throw. */
export interface StatusWriterObserver {
  /** Records the milliseconds from a status change until the API server has the status. */
  synced(ms: number): void;
}

/**
 * Registers the metrics of the status writer; call once per registry. The metric names are those of
 * the Go kubelet.
 */
export function statusWriterMetrics(registry: MetricRegistry): StatusWriterObserver {
  const duration = registry
    .histogram({
      name: 'kubelet_pod_status_sync_duration_seconds',
      help: 'Time from a change of a pod status until the API has it.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
    })
    .with({});
  return { synced: (ms) => duration.observe(ms / 1_000) };
}
