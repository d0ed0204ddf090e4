import type { Node } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger, Waiters, withDeadline } from '../../lib/index.ts';
import { describePod, type Pod, type PodJournal, type PodUid } from '../../pods/index.ts';
import { type AdmissionFacts, judgePod } from './judge-pod.ts';
import type { Admission, Allotter, Judgement, Preemption, Refusal } from './judgement.ts';
import type { PendingAdmissions } from './pending-admissions.ts';
import { isForNow } from './pressure.ts';
import { RefusalPace } from './refusal-pace.ts';

/** Admission of a new pod, or of new resources for an admitted pod. */
export type AdmissionOperation = 'add' | 'resize';

export interface PodAdmissionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'step'>;
  readonly pending: PendingAdmissions;
  /** The facts at this moment. A pending pod is among the `others` of the pods whose admission began later. */
  readonly facts: (pod: Pod, operation: AdmissionOperation) => AdmissionFacts;
  /** Reads this node's Node object from the API server. */
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  /**
   * Kills the victim with the event, status and condition of a preemption. Resolves when its containers have exited;
   * rejects when they have not exited in time.
   */
  readonly preempt: (victim: Pod, signal: AbortSignal) => Promise<void>;
  /** Whether a kubelet admitted the pod earlier, also before a restart or reboot. */
  readonly wasAdmitted: (uid: PodUid) => boolean;
  /** Left out on a node without exclusive resources and devices. */
  readonly allotter?: Allotter | undefined;
  /** Called for a pod that has run since before this kubelet process started: it keeps its exclusive resources. */
  readonly adopt?: ((pod: Pod) => void) | undefined;
  /**
   * What happens to new pods under node pressure: `refuse` rejects them at a limited rate, so that they run on other
   * nodes; `wait` keeps them pending, for a node without a cluster. `refuse` unless given.
   */
  readonly underPressure?: 'refuse' | 'wait' | undefined;
  readonly observer?: AdmissionObserver | undefined;
}

/** Counts preemptions. Never throws. */
export interface AdmissionObserver {
  preempted(resource: string): void;
}

/** How far the admission of one pod has come. */
interface Progress {
  untilMs: number;
  /** The latest moment until which the pod waits for node pressure to end. */
  readonly reliefMs: number;
  /** The result of allocating exclusive resources and devices. */
  allotment?: 'done' | Refusal;
  /** The Node object read from the API server during this admission. */
  node?: Node;
  /** The victims killed for this pod so far. */
  victims?: ReadonlySet<PodUid>;
  isTooLate?: boolean;
}

/** How long a pod waits for terminating pods to free resources. */
const roomMs = 30_000;
/** How long a critical pod waits for its victims after their grace periods. */
const madeRoomMs = 300_000;
/** The longest wait for node pressure to end. */
const reliefMs = { refuse: 60_000, wait: 3_000_000 } as const;
const reliefPollMs = 2_000;
/** The poll interval besides the wake-up by `released`. */
const roomPollMs = 1_000;
/** Above every grace period: aborts an admission that hangs. */
const longestMs = 3_600_000;

/**
 * Admits or rejects pods. Most decisions are immediate; a pod that needs exclusive resources, a fresh Node object,
 * preemption or the end of another pod stays pending, without blocking the admission of other pods.
 */
export class PodAdmission {
  readonly #deps: PodAdmissionDeps;
  readonly #waiting = new Waiters<'released'>();
  readonly #pace: RefusalPace;

  constructor(deps: PodAdmissionDeps) {
    this.#deps = deps;
    this.#pace = new RefusalPace(deps.clock);
  }

  /** Reports the decision once: before this returns where possible, never if the admission is cancelled. */
  admit(pod: Pod, decided: (admission: Admission) => void): void {
    const facts = this.#facts(pod, undefined);
    if (facts.standing === 'restored') this.#deps.adopt?.(pod);
    const judgement = this.#paced(judgePod(pod, facts), undefined);
    if (judgement.kind === 'admit') decided({ admit: true });
    else if (judgement.kind === 'refuse') decided(rejected(judgement.refusal));
    else {
      const { uid } = pod.metadata;
      const message = pendingReason(judgement);
      this.#deps.journal.step(uid, { stage: 'admitted', outcome: 'waiting', message });
      this.#deps.pending.begin(uid, (signal) => this.#decide(pod, judgement, decided, signal));
    }
  }

  /** Why an admitted pod cannot get the resources of its changed spec now; a resize preempts no pods. */
  resizeRefusal(pod: Pod): Refusal | undefined {
    const judgement = judgePod(pod, this.#deps.facts(pod, 'resize'));
    if (judgement.kind === 'admit' || judgement.kind === 'allot') return undefined;
    return judgement.kind === 'make-room' ? judgement.preemption.refusal : judgement.refusal;
  }

  /** A pod has terminated: the pods that wait for resources are evaluated again. */
  released(): void {
    this.#waiting.resolveAll('released');
  }

  async #decide(
    pod: Pod,
    first: Judgement,
    decided: (admission: Admission) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger, pending } = this.#deps;
    const { uid } = pod.metadata;
    const deadline = { clock, ms: longestMs, what: 'decide whether a pod may run' };
    try {
      const admission = await withDeadline(deadline, (inner) => this.#settle(pod, first, inner), signal);
      if (signal.aborted) return;
      pending.decided(uid);
      decided(admission);
    } catch (error) {
      if (signal.aborted) return;
      pending.decided(uid);
      logger.error('Failed to admit pod', error, { podUid: uid });
      const message = 'Unexpected error while attempting to admit the pod';
      decided({ admit: false, reason: 'UnexpectedAdmissionError', message });
    }
  }

  /** Does what the judgement requires until the pod is admitted or rejected. */
  async #settle(pod: Pod, first: Judgement, signal: AbortSignal): Promise<Admission> {
    const nowMs = this.#deps.clock.monotonicMs();
    const relief = reliefMs[this.#deps.underPressure ?? 'refuse'];
    const progress: Progress = { untilMs: nowMs + roomMs, reliefMs: nowMs + relief };
    for (let judgement = first; ; judgement = this.#judgeAgain(pod, progress)) {
      const admission = await this.#advance(pod, judgement, progress, signal);
      if (admission !== undefined) return admission;
    }
  }

  /** One step; undefined when the pod has to be evaluated again. */
  async #advance(
    pod: Pod,
    judgement: Judgement,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    switch (judgement.kind) {
      case 'admit':
        return { admit: true };
      case 'refuse':
        return rejected(judgement.refusal);
      case 'allot':
        progress.allotment = (await this.#deps.allotter?.allot(pod, signal)) ?? 'done';
        return undefined;
      case 'ask-node':
        return (await this.#fetchNode(pod, progress, signal)) ? undefined : rejected(judgement.refusal);
      case 'make-room':
        return await this.#makeRoom(pod, judgement.preemption, progress, signal);
      case 'wait-for-relief':
        await this.#waiting.waitWithin(this.#deps.clock, reliefPollMs, signal);
        // The wait for resources begins after the wait for the end of node pressure.
        progress.untilMs = this.#deps.clock.monotonicMs() + roomMs;
        return undefined;
      case 'wait-for-room':
        return await this.#awaitRoom(judgement.refusal, progress, signal);
    }
  }

  #facts(pod: Pod, allotment: Progress['allotment']): AdmissionFacts {
    const isAwaited = allotment === undefined && this.#deps.allotter?.isRequestedBy(pod) === true;
    const refused = allotment === 'done' ? undefined : allotment;
    const facts = { ...this.#deps.facts(pod, 'add'), allotment: isAwaited ? ('awaited' as const) : refused };
    const wasAdmitted = facts.standing === 'new' && this.#deps.wasAdmitted(pod.metadata.uid);
    return wasAdmitted ? { ...facts, standing: 'admitted-before' } : facts;
  }

  #judgeAgain(pod: Pod, progress: Progress): Judgement {
    const { node, isTooLate, allotment } = progress;
    const facts = this.#facts(pod, allotment);
    // After the deadline, pods that are still terminating count as staying.
    const ending = isTooLate === true ? new Set<PodUid>() : facts.ending;
    const judgement = judgePod(pod, { ...facts, ...(node !== undefined && { node }), ending });
    return this.#paced(judgement, progress);
  }

  /** Turns a rejection for node pressure into a wait while the rate limit of such rejections is reached. */
  #paced(judgement: Judgement, progress: Progress | undefined): Judgement {
    if (!isForNow(judgement)) return judgement;
    const { underPressure, clock } = this.#deps;
    if (progress !== undefined && clock.monotonicMs() >= progress.reliefMs) return judgement;
    if (underPressure !== 'wait' && this.#pace.take()) return judgement;
    return { kind: 'wait-for-relief', refusal: judgement.refusal };
  }

  /** Waits for a pod to terminate; after the deadline the pod is evaluated one last time. */
  async #awaitRoom(
    refusal: Refusal,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const leftMs = progress.untilMs - this.#deps.clock.monotonicMs();
    if (leftMs > 0) await this.#waiting.waitWithin(this.#deps.clock, Math.min(leftMs, roomPollMs), signal);
    else if (progress.isTooLate === true) return rejected(refusal);
    else progress.isTooLate = true;
    return undefined;
  }

  /** Reads the Node object at most once for each admission; answers whether it is new. */
  async #fetchNode(pod: Pod, progress: Progress, signal: AbortSignal): Promise<boolean> {
    if (progress.node !== undefined) return false;
    try {
      progress.node = await this.#deps.fetchNode(signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const fields = { pod: describePod(pod), error: describeError(error) };
      this.#deps.logger.warn('Failed to get the Node object, using the cached node labels', fields);
      return false;
    }
  }

  /** Kills each victim once; a pod that was admitted into the freed resources meanwhile becomes a victim too. */
  async #makeRoom(
    pod: Pod,
    { victims, resource, refusal }: Preemption,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const killed = progress.victims ?? new Set();
    const fresh = victims.filter(({ metadata }) => !killed.has(metadata.uid));
    if (fresh.length === 0) return await this.#awaitRoom(refusal, progress, signal);
    await Promise.all(fresh.map((victim) => this.#preempt(pod, victim, resource, signal)));
    signal.throwIfAborted();
    progress.victims = new Set([...killed, ...fresh.map(({ metadata }) => metadata.uid)]);
    // A victim that has not exited in time may exit later; until then its resources are in use.
    progress.isTooLate = false;
    progress.untilMs = this.#deps.clock.monotonicMs() + madeRoomMs;
    return undefined;
  }

  async #preempt(pod: Pod, victim: Pod, resource: string, signal: AbortSignal): Promise<void> {
    const { logger, preempt, observer } = this.#deps;
    const fields = { pod: describePod(victim), for: describePod(pod), resource };
    logger.info('Preempting pod', fields);
    try {
      await preempt(victim, signal);
      observer?.preempted(resource);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Failed to preempt pod', error, fields);
    }
  }
}

function rejected(refusal: Refusal): Admission {
  return { admit: false, ...refusal };
}

function pendingReason(judgement: Exclude<Judgement, { kind: 'admit' }>): string {
  if (judgement.kind === 'make-room') return 'preempting pods';
  return judgement.kind === 'allot'
    ? 'allocating exclusive CPUs, memory and devices'
    : judgement.refusal.message;
}
