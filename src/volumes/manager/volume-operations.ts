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
  /** The name of the operation, for example `mount` or `unmount`. */
  readonly name: string;
  /** Describes the operation in timeout errors, for example `mounting server:/path`. */
  readonly what: string;
  /**
   * Runs the operation. It must end eventually; the signal is aborted when another operation on the
   * path is requested.
   */
  readonly work: (signal: AbortSignal) => Promise<void>;
}

interface Running {
  readonly name: string;
  readonly what: string;
  readonly controller: AbortController;
  readonly result: Promise<void>;
}

/**
 * The time after which a caller stops waiting for a hanging volume operation; longer than any
 * healthy operation takes.
 */
const waitMs = 10_000;
const retryMs = 1_000;
const retry = { baseMs: 500, maxMs: 122_000 };
/** The maximum number of failed operations whose back-off is recorded. */
const mostFailures = 10_000;

/**
 * Runs operations that may hang, one per path. A caller waits for a limited time; the operation
 * continues and its result is returned to the next call. A failed operation is not retried before
 * its back-off has passed.
 *
 *     ── run ──> running ──> done, dropped
 *                  │ └────> failed, kept until the back-off has passed or another operation is
 *                  requested
 *                  └ another operation is requested ──> aborted; the other one starts after it has
 *                  ended
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

  /** The number of running and recently failed operations. */
  get size(): number {
    return this.#running.size + this.#failed.size;
  }

  /** Returns the paths of running and recently failed operations. */
  paths(): readonly string[] {
    return [...new Set([...this.#running.keys(), ...this.#failed.keys()])];
  }

  /**
   * Runs the operation, or joins the running one of that name. Rejects with the error of the
   * operation; rejects with `retryAtMs` while the operation is still running or its back-off has
   * not passed.
   */
  async run(path: string, operation: VolumeOperation, signal: AbortSignal): Promise<void> {
    const other = this.#running.get(path);
    if (other !== undefined && other.name !== operation.name) {
      other.controller.abort(cancelledError('Another operation was requested for the path'));
      await this.#join(
        other,
        other.result.catch(() => {}),
        signal,
      );
    }
    const running = this.#running.get(path) ?? this.#begin(path, operation);
    await this.#join(running, running.result, signal);
  }

  /**
   * Removes the recorded failure and back-off of the path; call when no operation on the path will
   * be requested any more.
   */
  forget(path: string): void {
    this.#failed.delete(path);
    this.#backoff.delete(path);
  }

  #begin(path: string, { name, what, work }: VolumeOperation): Running {
    const failed = this.#failed.get(path);
    if (failed !== undefined && failed.name !== name) this.forget(path);
    else if (failed !== undefined && this.#waitMs(path) > 0) throw failed.error;
    const controller = new AbortController();
    // Called in a promise callback, so that a synchronous throw is handled like a rejection.
    const result = Promise.resolve()
      .then(() => work(controller.signal))
      .then(
        () => this.forget(path),
        (error: unknown) => {
          throw controller.signal.aborted ? error : this.#recordFailure(path, name, error);
        },
      )
      .finally(() => this.#running.delete(path));
    // When the operation rejects, all its callers may have timed out, so the rejection is marked as
    // handled.
    result.catch(() => {});
    const running = { name, what, controller, result };
    this.#running.set(path, running);
    return running;
  }

  async #join({ what }: Running, result: Promise<void>, signal: AbortSignal): Promise<void> {
    const late = new KubelingError('DEADLINE_EXCEEDED', `Cannot wait for ${what} any longer`);
    using waiting = new LinkedController(signal);
    using _timer = this.#clock.timer(waitMs, () => waiting.abort(late));
    try {
      await abortable(result, waiting.signal);
    } catch (error) {
      if (error !== late) throw error;
      throw new KubelingError(
        'VOLUME_UNUSABLE',
        `${what} has not ended after ${waitMs / 1_000} s, and continues`,
        { details: { retryAtMs: this.#clock.monotonicMs() + retryMs } },
      );
    }
  }

  #waitMs(path: string): number {
    return this.#backoff.remainingMs(path, { nowMs: this.#clock.monotonicMs() });
  }

  #recordFailure(path: string, name: string, cause: unknown): KubelingError {
    const nowMs = this.#clock.monotonicMs();
    const retryAtMs = nowMs + this.#backoff.fail(path, { nowMs });
    const error = new KubelingError('VOLUME_UNUSABLE', describeError(cause), {
      details: { retryAtMs },
      cause,
    });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size >= mostFailures && oldest !== undefined) this.forget(oldest);
    this.#failed.delete(path);
    this.#failed.set(path, { name, error });
    return error;
  }
}

/**
 * The maximum number of items processed concurrently; more would only contend for mounts and files.
 */
const atOnce = 8;

/**
 * Returns the results in the order of the items; processes a limited number of items concurrently.
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const queue = [...items.entries()];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, item] = next;
      results[index] = await act(item);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, work));
  // Waits for all items even after a failure, so that no work is still running when the caller
  // continues.
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return results;
}
