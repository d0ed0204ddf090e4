import type { Node } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger, Waiters } from '../../lib/index.ts';
import { describePod, type Pod, type PodUid } from '../../pods/index.ts';
import { type AdmissionFacts, judgePod } from './judge-pod.ts';
import type { Admission, Allotter, Judgement, Preemption, Refusal } from './judgement.ts';
import { isForNow } from './pressure.ts';
import { RefusalPace } from './refusal-pace.ts';

/** Remembers, also over restarts and reboots, which pods were taken. What it cannot keep it says in the log. */
export interface AdmittedPods {
  has(uid: PodUid): boolean;
  add(pod: Pod): void;
}

/** Whether a pod is to be taken, or one that was taken is to have other resources. */
export type AdmissionOperation = 'add' | 'resize';

export interface PodAdmitterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** What there is to know about the pod now. Pods being settled are among the others of those that came after them. */
  readonly facts: (pod: Pod, operation: AdmissionOperation) => AdmissionFacts;
  /** This node as the API itself has it. */
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  /**
   * Ends a pod for another one, with the event, status and condition of `preempted`, and answers when its containers are
   * dead, or when it is clear that they will not be in time.
   */
  readonly preempt: (victim: Pod, signal: AbortSignal) => Promise<void>;
  readonly admitted: AdmittedPods;
  /** Nothing comes by the piece unless given. */
  readonly allotter?: Allotter | undefined;
  /**
   * What becomes of pods that the node is too short of something for: they are refused, though not all at once, so that
   * others run them; or they wait, where there are no others. Refused unless given.
   */
  readonly underPressure?: 'refuse' | 'wait' | undefined;
  readonly observer?: AdmissionObserver | undefined;
}

/** Told what is done, to be counted. Never throws. */
export interface AdmissionObserver {
  preempted(resource: string): void;
}

/** How far the admission of one pod has come. */
interface Progress {
  untilMs: number;
  /** Until when it may wait for the node to have enough again. */
  readonly reliefMs: number;
  /** What became of what the pod asks for by the piece. */
  allotment?: 'done' | Refusal;
  /** As the API told it. */
  node?: Node;
  /** Who was told to end for it. */
  told?: ReadonlySet<PodUid>;
  isTooLate?: boolean;
}

/** How long a pod waits for others that are ending already. */
const roomMs = 30_000;
/** How long a critical pod does for those that were told to end for it, after all the time they have to do so. */
const madeRoomMs = 300_000;
/** How long a pod waits at most while the node is short of something. */
const reliefMs = { refuse: 60_000, wait: 3_000_000 } as const;
const reliefPollMs = 2_000;
/** Besides looking when told that a pod has gone. */
const roomPollMs = 1_000;

/**
 * Decides whether pods may run here. Most are judged at once, by `judge`; what has to be asked, waited or made room for
 * first goes to `settle`, in the background: no pod waits for another one's admission.
 */
export class PodAdmitter {
  readonly #deps: PodAdmitterDeps;
  readonly #waiting = new Waiters<'released'>();
  readonly #pace: RefusalPace;

  constructor(deps: PodAdmitterDeps) {
    this.#deps = deps;
    this.#pace = new RefusalPace(deps.clock);
  }

  judge(pod: Pod): Judgement {
    return this.#noted(pod, this.#paced(judgePod(pod, this.#facts(pod, undefined)), undefined));
  }

  /** Why a pod that was taken cannot have now what its spec asks for; nobody ends for it. */
  judgeResize(pod: Pod): Refusal | undefined {
    const judgement = judgePod(pod, this.#deps.facts(pod, 'resize'));
    if (judgement.kind === 'admit' || judgement.kind === 'allot') return undefined;
    return judgement.kind === 'make-room' ? judgement.preemption.refusal : judgement.refusal;
  }

  /** Resources have become free: whoever waits for room looks again. */
  released(): void {
    this.#waiting.serveAll('released');
  }

  /** Carries out what a judgement asks for, until the pod is taken or refused. Throws only when it is aborted. */
  async settle(pod: Pod, first: Judgement, signal: AbortSignal): Promise<Admission> {
    const nowMs = this.#deps.clock.monotonicMs();
    const relief = reliefMs[this.#deps.underPressure ?? 'refuse'];
    const progress: Progress = { untilMs: nowMs + roomMs, reliefMs: nowMs + relief };
    for (let judgement = first; ; judgement = this.#judgeAgain(pod, progress)) {
      const settled = await this.#advance(pod, judgement, progress, signal);
      if (settled?.admit === true) this.#deps.admitted.add(pod);
      if (settled !== undefined) return settled;
    }
  }

  /** One step: undefined when it is worth judging again after it. */
  async #advance(
    pod: Pod,
    judgement: Judgement,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    switch (judgement.kind) {
      case 'admit':
        return yes;
      case 'refuse':
        return no(judgement.refusal);
      case 'allot':
        progress.allotment = (await this.#deps.allotter?.allot(pod, signal)) ?? 'done';
        return undefined;
      case 'ask-node':
        return (await this.#askNode(pod, progress, signal)) ? undefined : no(judgement.refusal);
      case 'make-room':
        return await this.#makeRoom(pod, judgement.preemption, progress, signal);
      case 'wait-for-relief':
        await this.#waiting.waitWithin(this.#deps.clock, reliefPollMs, signal);
        // What it has to wait for after that, it waits for from then on.
        progress.untilMs = this.#deps.clock.monotonicMs() + roomMs;
        return undefined;
      case 'wait-for-room':
        return await this.#awaitRoom(judgement.refusal, progress, signal);
    }
  }

  #facts(pod: Pod, allotment: Progress['allotment']): AdmissionFacts {
    const isAwaited = allotment === undefined && this.#deps.allotter?.isAskedBy(pod) === true;
    const refused = allotment === 'done' ? undefined : allotment;
    const facts = { ...this.#deps.facts(pod, 'add'), allotment: isAwaited ? ('awaited' as const) : refused };
    const isKnown = facts.standing === 'new' && this.#deps.admitted.has(pod.metadata.uid);
    return isKnown ? { ...facts, standing: 'admitted-before' } : facts;
  }

  #judgeAgain(pod: Pod, progress: Progress): Judgement {
    const { node, isTooLate, allotment } = progress;
    const facts = this.#facts(pod, allotment);
    // Nothing more is expected of pods that have not ended in time.
    const ending = isTooLate === true ? new Set<PodUid>() : facts.ending;
    const judgement = judgePod(pod, { ...facts, ...(node !== undefined && { node }), ending });
    return this.#paced(judgement, progress);
  }

  /** Who is refused for what will pass waits for its turn. */
  #paced(judgement: Judgement, progress: Progress | undefined): Judgement {
    if (!isForNow(judgement)) return judgement;
    const { underPressure, clock } = this.#deps;
    if (progress !== undefined && clock.monotonicMs() >= progress.reliefMs) return judgement;
    if (underPressure !== 'wait' && this.#pace.take()) return judgement;
    return { kind: 'wait-for-relief', refusal: judgement.refusal };
  }

  #noted(pod: Pod, judgement: Judgement): Judgement {
    if (judgement.kind === 'admit') this.#deps.admitted.add(pod);
    return judgement;
  }

  /** Looks again when something has ended, and after all the time there is for the last time. */
  async #awaitRoom(
    refusal: Refusal,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const leftMs = progress.untilMs - this.#deps.clock.monotonicMs();
    if (leftMs > 0) await this.#waiting.waitWithin(this.#deps.clock, Math.min(leftMs, roomPollMs), signal);
    else if (progress.isTooLate === true) return no(refusal);
    else progress.isTooLate = true;
    return undefined;
  }

  /** Whether the API has told how the node is: once, for that is the last word. */
  async #askNode(pod: Pod, progress: Progress, signal: AbortSignal): Promise<boolean> {
    if (progress.node !== undefined) return false;
    try {
      progress.node = await this.#deps.fetchNode(signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const fields = { pod: describePod(pod), error: describeError(error) };
      this.#deps.logger.warn(
        'Cannot ask the API for the labels of this node: going by what is known',
        fields,
      );
      return false;
    }
  }

  /** Nobody is told twice; but who came meanwhile and took the room that others have made goes, too. */
  async #makeRoom(
    pod: Pod,
    { victims, resource, refusal }: Preemption,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const told = progress.told ?? new Set();
    const untold = victims.filter(({ metadata }) => !told.has(metadata.uid));
    if (untold.length === 0) return await this.#awaitRoom(refusal, progress, signal);
    await Promise.all(untold.map((victim) => this.#end(pod, victim, resource, signal)));
    signal.throwIfAborted();
    progress.told = new Set([...told, ...untold.map(({ metadata }) => metadata.uid)]);
    // Who has not ended in the time it had may do so later; until then there is no room.
    progress.isTooLate = false;
    progress.untilMs = this.#deps.clock.monotonicMs() + madeRoomMs;
    return undefined;
  }

  async #end(pod: Pod, victim: Pod, resource: string, signal: AbortSignal): Promise<void> {
    const { logger, preempt, observer } = this.#deps;
    const fields = { pod: describePod(victim), for: describePod(pod), resource };
    logger.info('Ending a pod so that a critical one has room', fields);
    try {
      await preempt(victim, signal);
      observer?.preempted(resource);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('A pod that was to make room has not ended in time', error, fields);
    }
  }
}

const yes: Admission = { admit: true };

function no(refusal: Refusal): Admission {
  return { admit: false, ...refusal };
}
