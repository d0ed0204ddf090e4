import { describeError } from '../lib/index.ts';

export interface RuntimeWatcherDeps {
  readonly say: (text: string) => void;
  /** Starts the runtime again; undefined for one that is not ours. Never called while an earlier call is under way. */
  readonly restart: (() => Promise<unknown>) | undefined;
}

/** Tells once when the runtime goes away and once when it is back; one of our own is started again until it is. */
export class RuntimeWatcher {
  readonly #deps: RuntimeWatcherDeps;
  #state: 'there' | 'away' = 'there';
  #restart: 'idle' | 'under-way' | 'failed' = 'idle';

  constructor(deps: RuntimeWatcherDeps) {
    this.#deps = deps;
  }

  /** The runtime was asked how it is: what went wrong, or undefined. */
  looked(error: unknown): void {
    const state = error === undefined ? 'there' : 'away';
    if (state !== this.#state)
      this.#deps.say(state === 'there' ? 'answers again' : `does not answer: ${describeError(error)}`);
    this.#state = state;
    if (state === 'away') this.#startAgain();
    else if (this.#restart === 'failed') this.#restart = 'idle';
  }

  /** What kept it from starting may pass, so it is tried at every look; only the first failure is told. */
  #startAgain(): void {
    const { restart, say } = this.#deps;
    if (restart === undefined || this.#restart === 'under-way') return;
    const told = this.#restart === 'failed';
    this.#restart = 'under-way';
    restart().then(
      () => {
        this.#restart = 'idle';
      },
      (cause) => {
        if (!told) say(`cannot be started again, which is tried until it can: ${describeError(cause)}`);
        this.#restart = 'failed';
      },
    );
  }
}
