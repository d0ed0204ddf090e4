import type { PodStanding } from '../checkpoints/index.ts';
import { type Clock, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import type { Pod, PodUid } from '../pods/index.ts';
import type { Admission, Judgement, PodAdmitter, Refusal } from '../resources/index.ts';

export interface AdmissionDeskDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly judge: (pod: Pod, standing: PodStanding) => Judgement;
  /** Carries out what a judgement asks for that is none yet. */
  readonly settle: PodAdmitter['settle'];
  /** Something has ended: whoever waits for room looks again. */
  readonly released: () => void;
  /** Why a pod that runs cannot have what its spec asks for now. */
  readonly judgeResize: (pod: Pod) => Refusal | undefined;
}

interface Settling {
  readonly end: AbortController;
  readonly work: Promise<void>;
}

/** Others that are to end for a pod have the time they need themselves: this ends what hangs. */
const longestMs = 3_600_000;

/** Where pods are admitted. Most are at once; of those that have to wait, none waits for another. */
export class AdmissionDesk implements AsyncDisposable {
  readonly #deps: AdmissionDeskDeps;
  /** In the order they came. */
  readonly #settling = new Map<PodUid, Settling>();

  constructor(deps: AdmissionDeskDeps) {
    this.#deps = deps;
  }

  judge(pod: Pod, standing: PodStanding): Judgement {
    return this.#deps.judge(pod, standing);
  }

  released(): void {
    if (this.#settling.size > 0) this.#deps.released();
  }

  judgeResize(pod: Pod): Refusal | undefined {
    return this.#deps.judgeResize(pod);
  }

  /** Whether it is not clear yet that the pod may run. */
  isSettling(uid: PodUid): boolean {
    return this.#settling.has(uid);
  }

  /** Those that came after the pod and are not admitted yet: they take nothing from it. */
  after(uid: PodUid): ReadonlySet<PodUid> {
    const order = [...this.#settling.keys()];
    const own = order.indexOf(uid);
    return new Set(own === -1 ? [] : order.slice(own + 1));
  }

  /** Tells what has become of it, unless it is dropped before. */
  settle(pod: Pod, judgement: Judgement, told: (admission: Admission) => void): void {
    const { uid } = pod.metadata;
    this.drop(uid);
    const end = new AbortController();
    this.#settling.set(uid, { end, work: this.#settle(pod, judgement, told, end.signal) });
  }

  /** Nobody wants to know any more. */
  drop(uid: PodUid): void {
    this.#settling.get(uid)?.end.abort(new KubelingError('CANCELLED', 'The pod is not wanted any more'));
    this.#settling.delete(uid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const left = [...this.#settling.values()];
    for (const uid of this.#settling.keys()) this.drop(uid);
    await Promise.all(left.map(({ work }) => work));
  }

  async #settle(
    pod: Pod,
    judgement: Judgement,
    told: (admission: Admission) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger, settle } = this.#deps;
    const deadline = { clock, ms: longestMs, what: 'decide whether a pod may run' };
    try {
      const admission = await withDeadline(deadline, (inner) => settle(pod, judgement, inner), signal);
      if (signal.aborted) return;
      this.#settling.delete(pod.metadata.uid);
      told(admission);
    } catch (error) {
      if (signal.aborted) return;
      this.#settling.delete(pod.metadata.uid);
      logger.error('Cannot decide whether a pod may run', error, { podUid: pod.metadata.uid });
      const message = 'Unexpected error while attempting to admit the pod';
      told({ admit: false, reason: 'UnexpectedAdmissionError', message });
    }
  }
}
