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
   * The API object the status of a pod belongs to, as a watch last brought it: the pod itself, or the mirror of a static
   * pod. Undefined for one the API does not have, or has no more: nothing is written then.
   */
  readonly podOf: (uid: PodUid) => Pod | undefined;
  /** Whether anything of the pod may still run: true for all but pods known to have ended. */
  readonly mayRun: (uid: PodUid) => boolean;
  /** How patches are computed. */
  readonly schema: PatchSchema;
  readonly observer?: StatusWriterObserver | undefined;
  /**
   * The mirror tells how its static pod has ended, which came again under the same id: an API lets nothing that has ended
   * begin anew, so that it will never tell anything else.
   */
  readonly outlived?: ((mirror: Pod) => void) | undefined;
}

/** What this process knows of a status in the API. */
interface Written {
  /** The object written to; a static pod may get another mirror. */
  readonly apiUid: PodUid;
  /** The entry the API has; another one is news. */
  readonly entry: VersionedStatus;
  /** The copy of the watch it was compared with. */
  readonly watched: Pod;
  /** What the API answered, while the watch has not caught up. */
  readonly answered: Pod | undefined;
  readonly isHeld: boolean;
  readonly agreement: Agreement;
}

const outcomes = {
  gone: 'The API has the pod no more: its status is not written',
  replaced: 'The API has another pod of that name: the status of the old one is dropped',
  removed: 'The pod has ended and is removed from the API',
} as const;

const parallel = 8;
/** How long a status that tells of nothing but a start under way may wait for the one that tells how it went. */
const passingMs = 500;
const passMs = 10_000;
const policy = { baseMs: 250, factor: 2, maxMs: 10_000, jitter: 0.2, resetAfterMs: 60_000 };

/**
 * Brings the statuses of pods into the API and takes ended pods out of it. Nobody else does.
 *
 * The statuses of one pod are written one after the other, always the newest; up to eight pods at a time. A status is
 * compared with the copy of the pod that the watch brought, so that one that is there already costs no call. What most
 * pods show for a fraction of a second, that they are being started, is written only if it lasts longer. Every ten
 * seconds all of them are compared again: somebody may have overwritten one, and a pod that could not be called ended
 * may have ended.
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

  /** Pods whose status waits to be compared or written, or is being so. */
  get pending(): number {
    return this.#queue.pending;
  }

  /** Pods of which anything is remembered; never more than there are statuses, ten seconds after one has gone. */
  get size(): number {
    return this.#written.size;
  }

  /** Works until it is aborted, and then throws the signal's reason. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    this.#pass();
    await Promise.all([this.#follow(signal), this.#passAgain(signal), this.#queue.run(signal)]);
  }

  /** Whether the API has the status as it is here; also of a pod that it does not have. */
  isWritten(uid: PodUid): boolean {
    const { podOf, statuses } = this.#deps;
    if (podOf(uid) === undefined) return true;
    const entry = statuses.entry(uid);
    const written = this.#written.get(uid);
    return entry === undefined || (written?.entry === entry && !written.isHeld);
  }

  /** Looks at the pod now: its API object is new, as the mirror of a static pod may be, or has changed. */
  look(uid: PodUid): void {
    this.#queue.add(uid);
  }

  /** The static pod has a mirror: one that shows nothing yet need not wait until something changes. */
  mirrored(uid: PodUid): void {
    const mirror = this.#deps.podOf(uid);
    if (mirror !== undefined && mirror.status.conditions === undefined) this.look(uid);
  }

  /** The API answers again: what waits because of failures need not wait any longer. */
  reconnected(): void {
    this.#queue.reconnected();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const { uid, after } of this.#deps.statuses.changes().items(signal))
      this.#queue.add(uid, isPassing(after) ? passingMs : 0);
  }

  async #passAgain(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(passMs, signal);
      this.#pass();
    }
  }

  #pass(): void {
    const { statuses } = this.#deps;
    for (const uid of this.#written.keys()) if (statuses.entry(uid) === undefined) this.#forget(uid);
    for (const entry of statuses.entries()) {
      if (this.#isDoubtful(entry)) this.look(entry.uid);
      if (!isTerminalPhase(entry.status.phase)) this.#tellOutlived(entry, 'if-over');
    }
  }

  /** Not at once: right after a start nobody has looked yet how a pod has ended. */
  #tellOutlived({ uid, changedAtMs }: VersionedStatus, when: 'if-over' | 'always'): void {
    const { podOf, clock, outlived } = this.#deps;
    const pod = podOf(uid);
    if (pod === undefined || !isMirrorPod(pod) || clock.monotonicMs() - changedAtMs < passMs) return;
    if (when === 'always' || isTerminalPhase(pod.status.phase)) outlived?.(pod);
  }

  /** Whether there may be something to do: cheap, and said too often rather than too seldom. */
  #isDoubtful(entry: VersionedStatus): boolean {
    const pod = this.#deps.podOf(entry.uid);
    if (pod === undefined) return false;
    const written = this.#caughtUp(entry.uid, pod);
    const isAsWritten = written?.entry === entry && written.watched === pod && !written.isHeld;
    return !isAsWritten || isDueForRemoval(pod, entry);
  }

  /** A watch that brings just what the API answered brings no news, and one copy of it is enough. */
  #caughtUp(uid: PodUid, pod: Pod): Written | undefined {
    const written = this.#written.get(uid);
    const { answered } = written ?? {};
    if (written === undefined || answered === undefined || !isSameCopy(answered, pod)) return written;
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
    const known = newestCopy(watched, isSame ? before?.answered : undefined);
    // However often it is looked at, a status that had only lost its times has nothing to tell before it changes.
    const isAlike = before?.entry === entry && before.agreement === 'but-for-times';
    const turn = isSame && !isAlike ? 'later' : 'first';
    const outcome = await syncStatus(this.#deps, { entry, known, turn }, signal);
    this.#note(entry, watched, outcome);
  }

  #note(entry: VersionedStatus, watched: Pod, outcome: SyncOutcome): void {
    const { uid } = entry;
    const { clock, observer, statuses, logger } = this.#deps;
    if (outcome.kind === 'in-step') {
      if (outcome.isPatched) observer?.synced(clock.monotonicMs() - entry.changedAtMs);
      const { pod, isHeld, agreement } = outcome;
      const answered = pod === watched ? undefined : pod;
      const apiUid = watched.metadata.uid;
      this.#written.set(uid, { apiUid, entry, watched, answered, isHeld, agreement });
      return;
    }
    this.#written.delete(uid);
    // A static pod outlives its mirrors: its status waits for the next one. One that is gone may yet be ended by its
    // worker, which wants to know how it was.
    const isOver = outcome.kind !== 'gone' && watched.metadata.uid === uid;
    if (isOver && statuses.entry(uid)?.version === entry.version) statuses.forget(uid);
    logger.v(3)?.info(outcomes[outcome.kind], { pod: `${entry.name}_${entry.namespace}`, podUid: uid });
  }

  #failed({ key: uid, error, failures, nextTryMs }: FailedTry<PodUid>): void {
    const { statuses, logger } = this.#deps;
    const entry = statuses.entry(uid);
    if (entry !== undefined && isApiCode(error, 'API_INVALID')) this.#tellOutlived(entry, 'always');
    const { name = uid, namespace = '' } = entry ?? {};
    const fields = { pod: `${name}_${namespace}`, podUid: uid, error: describeError(error), nextTryMs };
    if (failures === 1) logger.warn('Cannot write the status of a pod to the API', fields);
    else logger.v(3)?.info('Still cannot write the status of a pod to the API', fields);
  }

  #forget(uid: PodUid): void {
    this.#written.delete(uid);
    this.#queue.forget(uid);
  }
}

/**
 * The newer of two copies of one API object: what a watch brought, and what a call answered. A watch lags behind calls,
 * and what is compared with an old copy may look unchanged. Versions that are no numbers cannot be compared; then
 * the watch is believed, which is always right in the end.
 */
export function newestCopy(watched: Pod, answered: Pod | undefined): Pod {
  if (answered === undefined || answered.metadata.uid !== watched.metadata.uid) return watched;
  const [seen, told] = [versionOf(watched), versionOf(answered)];
  return seen !== undefined && told !== undefined && told > seen ? answered : watched;
}

function versionOf({ metadata: { resourceVersion } }: Pod): bigint | undefined {
  return resourceVersion !== undefined && /^\d{1,30}$/.test(resourceVersion)
    ? BigInt(resourceVersion)
    : undefined;
}

export function isSameCopy({ metadata: one }: Pod, { metadata: other }: Pod): boolean {
  return one.uid === other.uid && one.resourceVersion === other.resourceVersion;
}

const underWay: ReadonlySet<string | undefined> = new Set(['ContainerCreating', 'PodInitializing']);

/** Whether it tells no more than that the pod is being started, as nothing of it has run yet and nothing has failed. */
export function isPassing(status: PodStatus): boolean {
  const { phase, reason, containerStatuses = [], initContainerStatuses = [] } = status;
  const isAwaited = ({ state, lastState }: ContainerStatus) =>
    underWay.has(state?.waiting?.reason) && lastState?.terminated === undefined;
  return (
    phase === 'Pending' &&
    reason === undefined &&
    [...containerStatuses, ...initContainerStatuses].every(isAwaited)
  );
}

/** Told what the writer does, to be counted. Never throws. */
export interface StatusWriterObserver {
  /** The API has a status, so long after it was made. */
  synced(ms: number): void;
}

/** Make one for a registry; the name is the one dashboards know. */
export function statusWriterMetrics(registry: MetricRegistry): StatusWriterObserver {
  const duration = registry
    .histogram({
      name: 'kubelet_pod_status_sync_duration_seconds',
      help: 'Time from a change of a pod status to the API having it.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
    })
    .with({});
  return { synced: (ms) => duration.observe(ms / 1_000) };
}
