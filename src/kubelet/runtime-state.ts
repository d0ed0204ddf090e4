import type { CriClient, StatusResponse } from '../cri/index.ts';
import { type Clock, describeError } from '../lib/index.ts';

/** How often the runtime is asked how it is. */
const pollMs = 5_000;
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
  #conditions: Omit<RuntimeProblems, 'failure'> = { runtime: [], network: [] };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  answered(answer: StatusResponse): void {
    this.#lastGoodMs = this.#clock.monotonicMs();
    this.#lastFailure = undefined;
    this.#conditions = {
      runtime: conditionProblems(answer, 'RuntimeReady', 'container runtime is not ready'),
      network: conditionProblems(answer, 'NetworkReady', 'container runtime network is not ready'),
    };
  }

  failed(error: unknown): void {
    this.#lastFailure = describeError(error);
  }

  problems(): RuntimeProblems {
    const silence = this.#silence();
    return silence === undefined
      ? this.#conditions
      : { runtime: [silence], network: this.#conditions.network };
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
}

/** Asks the runtime how it is, now and every few seconds, until the signal ends it. */
export async function watchRuntime(
  { cri, clock, state, looked }: RuntimeWatch,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      state.answered(await cri.status({}, signal));
      looked(undefined);
    } catch (error) {
      if (signal.aborted) return;
      state.failed(error);
      looked(error);
    }
    await clock.sleep(pollMs, signal).catch(() => {});
  }
}
