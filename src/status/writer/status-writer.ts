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
   * Returns the API object of a pod's status as last delivered by a watch: the pod itself or the
   * mirror of a static pod. Undefined if the API has none: then nothing is written.
   */
  readonly podOf: (uid: PodUid) => Pod | undefined;
  /**
   * Whether anything of the pod may still run: true for all pods except those known to have
   * terminated.
   */
  readonly mayRun: (uid: PodUid) => boolean;
  /** Computes the patches. */
  readonly schema: PatchSchema;
  readonly observer?: StatusWriterObserver | undefined;
  /**
   * The mirror shows the final status of a static pod that started again with the same UID: the API
   * does not allow a terminal phase to be reverted, so this mirror can show nothing else.
   */
  readonly outlived?: ((mirror: Pod) => void) | undefined;
}

/** What this process knows about a status in the API. */
interface Written {
  /** The object written to; a static pod may get another mirror. */
  readonly apiUid: PodUid;
  /** The entry that the API has; another entry is a change. */
  readonly entry: VersionedStatus;
  /** The copy of the watch that was compared. */
  readonly watched: Pod;
  /** The response of the API, until the watch has caught up. */
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
/** How long a status that only reports a starting pod may wait for the next one. */
const startingDelayMs = 500;
const compareMs = 10_000;
const policy = { baseMs: 250, factor: 2, maxMs: 10_000, jitter: 0.2, resetAfterMs: 60_000 };

/**
 * Writes pod statuses to the API and deletes terminated pods from it. The only writer.
 *
 * The statuses of one pod are written serially, always the newest; up to eight pods concurrently. A
 * status is compared with the pod delivered by the watch, so that an unchanged one costs no call.
 * The starting state, which lasts a fraction of a second for most pods, is written only if it lasts
 * longer. All statuses are compared every ten seconds: another client may have overwritten one, and
 * a pod that could not be reported as terminated may have terminated.
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

  /** Pods whose status is queued, compared or written. */
  get pending(): number {
    return this.#queue.pending;
  }

  /**
   * Pods with remembered state; never more than there are statuses, ten seconds after one was
   * removed.
   */
  get size(): number {
    return this.#written.size;
  }

  /** Runs until aborted and then throws the signal's reason. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    this.#compareAll();
    await Promise.all([this.#follow(signal), this.#comparePeriodically(signal), this.#queue.run(signal)]);
  }

  /** Whether the API has the cached status; also for a pod that the API does not have. */
  isWritten(uid: PodUid): boolean {
    const { podOf, statuses } = this.#deps;
    if (podOf(uid) === undefined) return true;
    const entry = statuses.entry(uid);
    const written = this.#written.get(uid);
    return entry === undefined || (written?.entry === entry && !written.isHeld);
  }

  /**
   * Compares the pod at once: its API object is new, for example the mirror of a static pod, or has
   * changed.
   */
  compare(uid: PodUid): void {
    this.#queue.add(uid);
  }

  /** The static pod has a mirror: one without a status need not wait for a change. */
  mirrored(uid: PodUid): void {
    const mirror = this.#deps.podOf(uid);
    if (mirror !== undefined && mirror.status.conditions === undefined) this.compare(uid);
  }

  /** The API is reachable again: pods in back-off are retried at once. */
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

  /** Not at once: right after a start the final states of pods have not been observed yet. */
  #reportOutlived({ uid, changedAtMs }: VersionedStatus, when: 'if-over' | 'always'): void {
    const { podOf, clock, outlived } = this.#deps;
    const pod = podOf(uid);
    if (pod === undefined || !isMirrorPod(pod) || clock.monotonicMs() - changedAtMs < compareMs) return;
    if (when === 'always' || isTerminalPhase(pod.status.phase)) outlived?.(pod);
  }

  /** Whether the status may differ: cheap, with false positives but no false negatives. */
  #mayDiffer(entry: VersionedStatus): boolean {
    const pod = this.#deps.podOf(entry.uid);
    if (pod === undefined) return false;
    const written = this.#caughtUp(entry.uid, pod);
    const isAsWritten = written?.entry === entry && written.watched === pod && !written.isHeld;
    return !isAsWritten || isDueForRemoval(pod, entry);
  }

  /** A watch event equal to the response of the API is no change; one copy of it is enough. */
  #caughtUp(uid: PodUid, pod: Pod): Written | undefined {
    const written = this.#written.get(uid);
    const { response } = written ?? {};
    if (written === undefined || response === undefined || !isSameCopy(response, pod)) return written;
    const caughtUp = { ...written, watched: pod, answered: undefined };
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
    // A status that differed only in lost times stays equal until it changes.
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
    // A static pod outlives its mirrors: its status waits for the next one. A deleted pod may still
    // be terminated by its worker, which needs its status.
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
 * Returns the newer of two copies of one API object: that of the watch and that of a response. A
 * watch lags behind calls, and compared with an old copy a status may seem unchanged. Versions that
 * are not numbers cannot be compared; then the watch wins, which is eventually correct.
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
 * Whether the status only reports that the pod is starting: nothing has run yet and nothing has
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

/** Counts the actions of the writer. Never throws. */
export interface StatusWriterObserver {
  /** The API has a status this long after it changed. */
  synced(ms: number): void;
}

/** Create it once per registry; the name is the one dashboards use. */
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
