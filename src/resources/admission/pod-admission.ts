import type { Node } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger, Waiters, withDeadline } from '../../lib/index.ts';
import { describePod, type Pod, type PodJournal, type PodUid } from '../../pods/index.ts';
import { type AdmissionFacts, evaluatePod } from './evaluate-pod.ts';
import type { Admission, Evaluation, PodResourceAllocator, Preemption, Rejection } from './evaluation.ts';
import type { PendingAdmissions } from './pending-admissions.ts';
import { isPressureRejection } from './pressure.ts';
/** Admission of a new pod, or of new resources for an admitted pod. */
export type AdmissionOperation = 'add' | 'resize';

export interface PodAdmissionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'step'>;
  readonly pending: PendingAdmissions;
  /**
   * Returns the current state of the node, its pods and the given pod, from which the admission is
   * decided. A pending pod counts among the other pods for every pod whose admission began later.
   */
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
  /** Allocates exclusive resources and devices; undefined on a node without them. */
  readonly allocator?: PodResourceAllocator | undefined;
  /**
   * Called for a pod that has run since before this kubelet process started: the pod keeps its
   * exclusive resources.
   */
  readonly adopt?: ((pod: Pod) => void) | undefined;
  /**
   * What happens to new pods under node pressure: `refuse` rejects them at a limited rate, so that
   * they run on other nodes; `wait` keeps them pending, for a node without a cluster. Defaults to
   * `refuse`.
   */
  readonly underPressure?: 'refuse' | 'wait' | undefined;
  readonly observer?: AdmissionObserver | undefined;
}

/** Counts preempted pods, by the resource that was insufficient. Never throws. */
export interface AdmissionObserver {
  preempted(resource: string): void;
}

/** The state of one pending admission. */
interface Progress {
  deadlineMs: number;
  /** The time until which the pod waits for node pressure to end. */
  readonly pressureDeadlineMs: number;
  /** The result of allocating exclusive resources and devices. */
  allocation?: 'done' | Rejection;
  /**
   * The Node object that was read from the API server during this admission; undefined if it was
   * not read.
   */
  node?: Node;
  /** The victims killed for this pod so far. */
  victims?: ReadonlySet<PodUid>;
  isExpired?: boolean;
}

/** How long a pod waits for terminating pods to release resources. */
const terminationWaitMs = 30_000;
/** How long a critical pod waits for its victims after their grace periods. */
const preemptionWaitMs = 300_000;
/** The longest wait for node pressure to end. */
const pressureWaitMs = { refuse: 60_000, wait: 3_000_000 } as const;
const pressurePollMs = 2_000;
/**
 * The poll interval while waiting for pods to terminate; the wait also ends when a pod has
 * terminated.
 */
const terminationPollMs = 1_000;
/**
 * The maximum duration of an admission, longer than any grace period; an admission that hangs is
 * aborted after it.
 */
const longestMs = 3_600_000;

/**
 * Admits or rejects pods. Most decisions are immediate; a pod that needs exclusive resources, a fresh Node object,
 * preemption or the end of another pod stays pending, without blocking the admission of other pods.
 */
export class PodAdmission {
  readonly #deps: PodAdmissionDeps;
  readonly #waiting = new Waiters<'released'>();
  readonly #rateLimit: RejectionRateLimit;

  constructor(deps: PodAdmissionDeps) {
    this.#deps = deps;
    this.#rateLimit = new RejectionRateLimit(deps.clock);
  }

  /** Calls `onDecision` once: synchronously where possible, never if the admission is cancelled. */
  admit(pod: Pod, onDecision: (admission: Admission) => void): void {
    const facts = this.#facts(pod, undefined);
    if (facts.standing === 'restored') this.#deps.adopt?.(pod);
    const evaluation = this.#rateLimited(evaluatePod(pod, facts), undefined);
    if (evaluation.kind === 'admit') onDecision({ admit: true });
    else if (evaluation.kind === 'reject') onDecision(rejected(evaluation.rejection));
    else {
      const { uid } = pod.metadata;
      const message = pendingReason(evaluation);
      this.#deps.journal.step(uid, { stage: 'admitted', outcome: 'waiting', message });
      this.#deps.pending.begin(uid, (signal) => this.#decide(pod, evaluation, onDecision, signal));
    }
  }

  /**
   * Returns why an admitted pod cannot get the resources of its changed spec now; undefined if the
   * pod can get them. A resize preempts no pods.
   */
  resizeRejection(pod: Pod): Rejection | undefined {
    const evaluation = evaluatePod(pod, this.#deps.facts(pod, 'resize'));
    if (evaluation.kind === 'admit' || evaluation.kind === 'allocate') return undefined;
    return evaluation.kind === 'preempt' ? evaluation.preemption.rejection : evaluation.rejection;
  }

  /** Called when a pod has terminated: the pods that wait for resources are evaluated again. */
  resourcesReleased(): void {
    this.#waiting.resolveAll('released');
  }

  async #decide(
    pod: Pod,
    first: Evaluation,
    onDecision: (admission: Admission) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger, pending } = this.#deps;
    const { uid } = pod.metadata;
    const deadline = { clock, ms: longestMs, what: 'decide whether a pod may run' };
    try {
      const admission = await withDeadline(deadline, (inner) => this.#run(pod, first, inner), signal);
      if (signal.aborted) return;
      pending.decided(uid);
      onDecision(admission);
    } catch (error) {
      if (signal.aborted) return;
      pending.decided(uid);
      logger.error('Failed to admit pod', error, { podUid: uid });
      const message = 'Unexpected error while attempting to admit the pod';
      onDecision({ admit: false, reason: 'UnexpectedAdmissionError', message });
    }
  }

  /**
   * Evaluates the pod repeatedly and executes the required steps until it is admitted or rejected.
   */
  async #run(pod: Pod, first: Evaluation, signal: AbortSignal): Promise<Admission> {
    const nowMs = this.#deps.clock.monotonicMs();
    const relief = pressureWaitMs[this.#deps.underPressure ?? 'refuse'];
    const progress: Progress = { deadlineMs: nowMs + terminationWaitMs, pressureDeadlineMs: nowMs + relief };
    for (let evaluation = first; ; evaluation = this.#reevaluate(pod, progress)) {
      const admission = await this.#advance(pod, evaluation, progress, signal);
      if (admission !== undefined) return admission;
    }
  }

  /**
   * Executes one step of an admission. Returns undefined when the pod has to be evaluated again.
   */
  async #advance(
    pod: Pod,
    evaluation: Evaluation,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    switch (evaluation.kind) {
      case 'admit':
        return { admit: true };
      case 'reject':
        return rejected(evaluation.rejection);
      case 'allocate':
        progress.allocation = (await this.#deps.allocator?.allocatePod(pod, signal)) ?? 'done';
        return undefined;
      case 'fetch-node':
        return (await this.#fetchNode(pod, progress, signal)) ? undefined : rejected(evaluation.rejection);
      case 'preempt':
        return await this.#preemptVictims(pod, evaluation.preemption, progress, signal);
      case 'wait-for-pressure':
        await this.#waiting.waitWithin(this.#deps.clock, pressurePollMs, signal);
        // The time limit for waiting for resources starts when the wait for the end of node
        // pressure is over.
        progress.deadlineMs = this.#deps.clock.monotonicMs() + terminationWaitMs;
        return undefined;
      case 'wait-for-termination':
        return await this.#waitForTermination(evaluation.rejection, progress, signal);
    }
  }

  #facts(pod: Pod, allocation: Progress['allocation']): AdmissionFacts {
    const isAwaited = allocation === undefined && this.#deps.allocator?.isRequestedBy(pod) === true;
    const refused = allocation === 'done' ? undefined : allocation;
    const facts = { ...this.#deps.facts(pod, 'add'), allocation: isAwaited ? ('pending' as const) : refused };
    const wasAdmitted = facts.standing === 'new' && this.#deps.wasAdmitted(pod.metadata.uid);
    return wasAdmitted ? { ...facts, standing: 'admitted-before' } : facts;
  }

  #reevaluate(pod: Pod, progress: Progress): Evaluation {
    const { node, isExpired, allocation } = progress;
    const facts = this.#facts(pod, allocation);
    // After the deadline, pods that are still terminating count as running.
    const ending = isExpired === true ? new Set<PodUid>() : facts.ending;
    const evaluation = evaluatePod(pod, { ...facts, ...(node !== undefined && { node }), ending });
    return this.#rateLimited(evaluation, progress);
  }

  /** Turns a rejection for node pressure into a wait while the rate limit of such rejections is reached. */
  #rateLimited(evaluation: Evaluation, progress: Progress | undefined): Evaluation {
    if (!isPressureRejection(evaluation)) return evaluation;
    const { underPressure, clock } = this.#deps;
    if (progress !== undefined && clock.monotonicMs() >= progress.pressureDeadlineMs) return evaluation;
    if (underPressure !== 'wait' && this.#rateLimit.tryAcquire()) return evaluation;
    return { kind: 'wait-for-pressure', rejection: evaluation.rejection };
  }

  /** Waits for a pod to terminate; after the deadline the pod is evaluated one last time. */
  async #waitForTermination(
    rejection: Rejection,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const leftMs = progress.deadlineMs - this.#deps.clock.monotonicMs();
    if (leftMs > 0)
      await this.#waiting.waitWithin(this.#deps.clock, Math.min(leftMs, terminationPollMs), signal);
    else if (progress.isExpired === true) return rejected(rejection);
    else progress.isExpired = true;
    return undefined;
  }

  /**
   * Fetches the Node object at most once per admission; returns whether this call has fetched it.
   */
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

  /**
   * Kills each victim once. A pod that was admitted into the resources that a victim has released
   * becomes a victim too.
   */
  async #preemptVictims(
    pod: Pod,
    { victims, resource, rejection }: Preemption,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const killed = progress.victims ?? new Set();
    const fresh = victims.filter(({ metadata }) => !killed.has(metadata.uid));
    if (fresh.length === 0) return await this.#waitForTermination(rejection, progress, signal);
    await Promise.all(fresh.map((victim) => this.#preempt(pod, victim, resource, signal)));
    signal.throwIfAborted();
    progress.victims = new Set([...killed, ...fresh.map(({ metadata }) => metadata.uid)]);
    // A victim that has not exited in time may exit later; until then its resources are in use.
    progress.isExpired = false;
    progress.deadlineMs = this.#deps.clock.monotonicMs() + preemptionWaitMs;
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

function rejected(rejection: Rejection): Admission {
  return { admit: false, ...rejection };
}

function pendingReason(evaluation: Exclude<Evaluation, { kind: 'admit' }>): string {
  if (evaluation.kind === 'preempt') return 'preempting pods';
  return evaluation.kind === 'allocate'
    ? 'allocating exclusive CPUs, memory and devices'
    : evaluation.rejection.message;
}

/**
 * How many pods may be rejected in a burst; after the burst, one pod may be rejected per interval.
 */
const burst = 5;
const refillMs = 10_000;

/**
 * Limits the rate at which a node under pressure rejects pods: a controller that replaces each
 * rejected pod would otherwise fill the cluster with failed pods.
 */
export class RejectionRateLimit {
  readonly #clock: Clock;
  #left = burst;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a pod may be rejected for node pressure now; counts the rejection. */
  tryAcquire(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const refilled = Math.floor((nowMs - this.#sinceMs) / refillMs);
    this.#left = Math.min(burst, this.#left + refilled);
    this.#sinceMs = this.#left === burst ? nowMs : this.#sinceMs + refilled * refillMs;
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }
}
