import type { CriClient, StatusResponse } from '../../cri/index.ts';
import { type Clock, describeError, formatDurationMs, HintLatch, withDeadline } from '../../lib/index.ts';
import type { PlegObserver } from '../../pleg/index.ts';
import { noAbilities, type RuntimeAbilities, readAbilities } from './runtime-abilities.ts';

/** The interval of status calls to the runtime. */
const pollMs = 5_000;
/**
 * The timeout of a status call: much shorter than that of other calls, so that a hanging runtime is
 * reported early.
 */
const answerMs = 10_000;
/** How long a status call may be without a response before this counts as a problem. */
const slowAfterMs = 5_000;
/** How long a successful runtime status is valid. */
const staleAfterMs = 30_000;

/** The problems of the runtime that block pods. */
export interface RuntimeProblems {
  /** The problems that block all pods. */
  readonly runtime: readonly string[];
  /** The problems that block only pods without the host network. */
  readonly network: readonly string[];
}

/** The health of the runtime, derived from the results of status calls. */
export class RuntimeState {
  readonly #clock: Clock;
  #lastGoodMs: number | undefined;
  #lastFailure: string | undefined;
  /** The start time of the status call in flight; undefined when no call is in flight. */
  #askedMs: number | undefined;
  #conditions: Omit<RuntimeProblems, 'failure'> = { runtime: [], network: [] };
  #abilities = noAbilities;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The features that the runtime reported in its last status. */
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

  /**
   * Returns the runtime problems for health endpoints: unlike in `problems`, a failed or slow
   * status call counts immediately.
   */
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
  /** Called after each response and each failure of a status call. */
  readonly looked: (error: unknown) => void;
  /**
   * Raised when the runtime may have stopped or be available again; triggers an immediate status
   * call.
   */
  readonly hints?: HintLatch | undefined;
}

/** Reads the runtime's status now and then periodically until the signal is aborted. */
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

/** Reads the runtime status once and publishes the result. */
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

/**
 * The event stream of the runtime breaks and recovers with the runtime, so each change triggers a
 * status call.
 */
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
