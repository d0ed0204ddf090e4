import { Backoff, type Clock, type Random, type Timer } from '../../lib/index.ts';

export interface ServerGateOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** How many may pass at a time while the server is there. */
  readonly width: number;
  /** Somebody may pass again. */
  readonly onOpen: () => void;
}

/** The longest wait bounds how late news come after the server is back. */
const policy = { baseMs: 1_000, factor: 2, maxMs: 10_000, jitter: 0.5 };

/** Holds back everybody while a server is away, but for one who looks whether it is back, ever more rarely. */
export class ServerGate implements Disposable {
  readonly #options: ServerGateOptions;
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #state: 'open' | 'closed' = 'open';
  #answers = 0;

  constructor(options: ServerGateOptions) {
    this.#options = options;
    this.#backoff = new Backoff(policy, options.random);
  }

  /** How often the server answered. */
  get answers(): number {
    return this.#answers;
  }

  /** How many may be on their way now. */
  get width(): number {
    if (this.#state === 'open') return this.#options.width;
    return this.#timer === undefined ? 1 : 0;
  }

  answered(): void {
    this.#answers++;
    this.#state = 'open';
    this.#backoff.reset();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  failed(): void {
    this.#state = 'closed';
    if (this.#timer !== undefined) return;
    const { clock, onOpen } = this.#options;
    this.#timer = clock.timer(this.#backoff.fail(clock.monotonicMs()), () => {
      this.#timer = undefined;
      onOpen();
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
