import {
  abortable,
  type Clock,
  cancelledError,
  describeError,
  KeyedBackoff,
  KubelingError,
  LinkedController,
  type Random,
} from '../../lib/index.ts';

export interface VolumeOperationsDeps {
  readonly clock: Clock;
  readonly random: Random;
}

export interface VolumeOperation {
  /** What is done: `mount` or `unmount` for example. */
  readonly name: string;
  /** For whoever gives up waiting: `mounting server:/path`. */
  readonly what: string;
  /** Ends by itself sooner or later; its signal is aborted when something else is to be done there. */
  readonly work: (signal: AbortSignal) => Promise<void>;
}

interface Running {
  readonly name: string;
  readonly what: string;
  readonly controller: AbortController;
  readonly result: Promise<void>;
}

/** Longer than anything takes that does not hang; nobody waits longer for what does. */
const patienceMs = 10_000;
const lookAgainMs = 1_000;
const retry = { baseMs: 500, maxMs: 122_000 };
/** Failures that nobody came back for. */
const mostFailures = 10_000;

/**
 * Operations that may hang, one at a place at a time. Whoever asks for one waits a while; it goes on without them, and
 * they find how it ended when they ask again. One that failed is not begun again before its time.
 *
 *     ── run ──> running ──> done, forgotten
 *                  │  └────> failed, kept until its time or until something else is to be done there
 *                  └ something else is asked for ──> aborted; that begins once it has ended
 */
export class VolumeOperations {
  readonly #clock: Clock;
  readonly #backoff: KeyedBackoff;
  readonly #running = new Map<string, Running>();
  readonly #failed = new Map<string, { readonly name: string; readonly error: KubelingError }>();

  constructor({ clock, random }: VolumeOperationsDeps) {
    this.#clock = clock;
    this.#backoff = new KeyedBackoff({ policy: retry, random });
  }

  /** How many run or have failed last. */
  get size(): number {
    return this.#running.size + this.#failed.size;
  }

  /** Where one runs or has failed last. */
  places(): readonly string[] {
    return [...new Set([...this.#running.keys(), ...this.#failed.keys()])];
  }

  /** Rejects as the operation does; while it runs on, and while it is too soon to try again, with `retryAtMs`. */
  async run(place: string, operation: VolumeOperation, signal: AbortSignal): Promise<void> {
    const other = this.#running.get(place);
    if (other !== undefined && other.name !== operation.name) {
      other.controller.abort(cancelledError('Something else is to be done there'));
      await this.#join(
        other,
        other.result.catch(() => {}),
        signal,
      );
    }
    const running = this.#running.get(place) ?? this.#begin(place, operation);
    await this.#join(running, running.result, signal);
  }

  /** Nothing will be asked of the place any more. */
  forget(place: string): void {
    this.#failed.delete(place);
    this.#backoff.delete(place);
  }

  #begin(place: string, { name, what, work }: VolumeOperation): Running {
    const failed = this.#failed.get(place);
    if (failed !== undefined && failed.name !== name) this.forget(place);
    else if (failed !== undefined && this.#waitMs(place) > 0) throw failed.error;
    const controller = new AbortController();
    // Through a resolved promise, so that work which throws at once fails like any other.
    const result = Promise.resolve()
      .then(() => work(controller.signal))
      .then(
        () => this.forget(place),
        (error: unknown) => {
          throw controller.signal.aborted ? error : this.#noteFailure(place, name, error);
        },
      )
      .finally(() => this.#running.delete(place));
    // Whoever asked may have gone by then.
    result.catch(() => {});
    const running = { name, what, controller, result };
    this.#running.set(place, running);
    return running;
  }

  async #join({ what }: Running, result: Promise<void>, signal: AbortSignal): Promise<void> {
    const late = new KubelingError('DEADLINE_EXCEEDED', `Cannot wait for ${what} any longer`);
    using waiting = new LinkedController(signal);
    using _timer = this.#clock.timer(patienceMs, () => waiting.abort(late));
    try {
      await abortable(result, waiting.signal);
    } catch (error) {
      if (error !== late) throw error;
      throw new KubelingError(
        'VOLUME_UNUSABLE',
        `${what} has not ended after ${patienceMs / 1_000} s, it goes on`,
        { details: { retryAtMs: this.#clock.monotonicMs() + lookAgainMs } },
      );
    }
  }

  #waitMs(place: string): number {
    return this.#backoff.remainingMs(place, { nowMs: this.#clock.monotonicMs() });
  }

  #noteFailure(place: string, name: string, cause: unknown): KubelingError {
    const nowMs = this.#clock.monotonicMs();
    const retryAtMs = nowMs + this.#backoff.fail(place, { nowMs });
    const error = new KubelingError('VOLUME_UNUSABLE', describeError(cause), {
      details: { retryAtMs },
      cause,
    });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size >= mostFailures && oldest !== undefined) this.forget(oldest);
    this.#failed.delete(place);
    this.#failed.set(place, { name, error });
    return error;
  }
}

/** More would only wait for each other's mounts and files. */
const atOnce = 8;

/** The answers in the order of the items, of which only some are worked on at a time. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const answers: R[] = [];
  const queue = [...items.entries()];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, item] = next;
      answers[index] = await act(item);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, work));
  // Not before all have ended: whoever comes next must not meet one that is still at it.
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return answers;
}
