import type { CriClient, StatusResponse } from '../../cri/index.ts';
import { type Clock, describeError, formatDurationMs, HintLatch, withDeadline } from '../../lib/index.ts';
import type { PlegObserver } from '../../pleg/index.ts';
import { noAbilities, type RuntimeAbilities, readAbilities } from './runtime-abilities.ts';

/** How often the runtime is asked how it is. */
const pollMs = 5_000;
/** One that hangs is told like one that is away, long before calls that may take their time give up. */
const answerMs = 10_000;
/** An answer that takes longer than this is missed. */
const slowAfterMs = 5_000;
/** A good answer counts for this long. */
const staleAfterMs = 30_000;

/** What keeps pods from being worked on, as far as the runtime as a whole is concerned. */
export interface RuntimeProblems {
  /** Nothing can be done while any of these holds. */
  readonly runtime: readonly string[];
  /** Only pods with a network of their own are held up. */
  readonly network: readonly string[];
}

/** What is known of the runtime's health. Pure bookkeeping: whoever asks the runtime reports it here. */
export class RuntimeState {
  readonly #clock: Clock;
  #lastGoodMs: number | undefined;
  #lastFailure: string | undefined;
  /** Since when an answer is waited for; undefined while nobody asks. */
  #askedMs: number | undefined;
  #conditions: Omit<RuntimeProblems, 'failure'> = { runtime: [], network: [] };
  #abilities = noAbilities;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As the runtime last told. */
  get abilities(): RuntimeAbilities {
    return this.#abilities;
  }

  asked(): void {
    this.#askedMs = this.#clock.monotonicMs();
  }

  answered(answer: StatusResponse): void {
    this.#askedMs = undefined;
    this.#lastGoodMs = this.#clock.monotonicMs();
    this.#lastFailure = undefined;
    this.#abilities = readAbilities(answer);
    this.#conditions = {
      runtime: conditionProblems(answer, 'RuntimeReady', 'container runtime is not ready'),
      network: conditionProblems(answer, 'NetworkReady', 'container runtime network is not ready'),
    };
  }

  failed(error: unknown): void {
    this.#askedMs = undefined;
    this.#lastFailure = describeError(error);
  }

  problems(): RuntimeProblems {
    const silence = this.#silence();
    return silence === undefined
      ? this.#conditions
      : { runtime: [silence], network: this.#conditions.network };
  }

  /** For people who ask how the node is: the last answer counts, not the last good one, and so does waiting for one. */
  readiness(): RuntimeProblems {
    const missed = this.#missed();
    return missed === undefined ? this.problems() : { runtime: [missed], network: this.#conditions.network };
  }

  #missed(): string | undefined {
    if (this.#lastFailure !== undefined) return `container runtime does not answer: ${this.#lastFailure}`;
    const waitedMs = this.#askedMs === undefined ? 0 : this.#clock.monotonicMs() - this.#askedMs;
    if (waitedMs <= slowAfterMs) return undefined;
    return `container runtime has not answered for ${formatDurationMs(Math.trunc(waitedMs))}`;
  }

  #silence(): string | undefined {
    const because = this.#lastFailure === undefined ? '' : `: ${this.#lastFailure}`;
    if (this.#lastGoodMs === undefined)
      return `container runtime status check may not have completed yet${because}`;
    if (this.#clock.monotonicMs() - this.#lastGoodMs < staleAfterMs) return undefined;
    return `container runtime is down${because}`;
  }
}

function conditionProblems({ status }: StatusResponse, type: string, text: string): readonly string[] {
  const condition = status?.conditions.find((item) => item.type === type);
  if (condition?.status === true) return [];
  const details = [condition?.reason, condition?.message].filter((part) => part !== undefined && part !== '');
  return [details.length === 0 ? text : `${text}: ${details.join(': ')}`];
}

export interface RuntimeWatch {
  readonly cri: Pick<CriClient, 'status'>;
  readonly clock: Clock;
  readonly state: RuntimeState;
  /** Told after each answer and each failure. */
  readonly looked: (error: unknown) => void;
  /** Raised by who has reason to think that the runtime went away or came back: it is asked at once. */
  readonly hints?: HintLatch | undefined;
}

/** Asks the runtime how it is, now and every few seconds, until the signal ends it. */
export async function watchRuntime(
  { cri, clock, state, looked, hints = new HintLatch(clock) }: RuntimeWatch,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    hints.clear();
    await checkRuntime({ cri, clock, state, looked }, signal);
    await hints.wait(pollMs, signal).catch(() => {});
  }
}

/** Asks it once, and lets everybody know what it said. */
export async function checkRuntime(
  { cri, clock, state, looked }: Omit<RuntimeWatch, 'hints'>,
  signal: AbortSignal,
): Promise<void> {
  const deadline = { clock, ms: answerMs, what: 'ask the container runtime how it is' };
  state.asked();
  try {
    state.answered(await withDeadline(deadline, (inner) => cri.status({}, inner), signal));
    looked(undefined);
  } catch (error) {
    if (signal.aborted) return;
    state.failed(error);
    looked(error);
  }
}

/** The stream of events breaks and comes back with the runtime: nobody should wait for the next look to know. */
export function withHints(observer: PlegObserver, hint: () => void): PlegObserver {
  return {
    ...observer,
    streamOpened() {
      observer.streamOpened();
      hint();
    },
    streamFailed() {
      observer.streamFailed();
      hint();
    },
  };
}
