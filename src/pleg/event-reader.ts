import {
  Backoff,
  type Clock,
  cancelledError,
  isKind,
  KubelingError,
  LinkedController,
  type Logger,
  type Random,
} from '../lib/index.ts';
import type { PlegObserver } from './metrics.ts';
import type { EventSource, RuntimeHint } from './runtime-events.ts';

export interface EventReaderDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly source: EventSource;
  readonly metrics?: PlegObserver | undefined;
  readonly received: (hint: RuntimeHint) => void;
  /** Called before an event stream is opened. */
  readonly opening: () => void;
  /** Called when the event stream has ended. */
  readonly broken: (error: unknown) => void;
}

/**
 * The interval of retries with a runtime that does not support events; the runtime may be replaced
 * by a version that does.
 */
const unsupportedMs = 5 * 60_000;

/**
 * Reads runtime events and reopens the stream when it breaks, with a back-off that a delivered
 * event resets.
 */
export class EventReader {
  readonly #deps: EventReaderDeps;
  readonly #backoff: Backoff;
  #stream: LinkedController | undefined;
  #logged: 'no' | 'yes' = 'no';

  constructor(deps: EventReaderDeps) {
    this.#deps = deps;
    this.#backoff = new Backoff({ baseMs: 500, maxMs: 30_000, jitter: 0.5 }, deps.random);
  }

  /** Closes the current event stream, so that a new one is opened. */
  reopen(why: string): void {
    this.#stream?.abort(cancelledError(why));
  }

  /** Reads events until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const error = await this.#readOne(signal);
      if (signal.aborted) return;
      this.#deps.broken(error);
      await this.#deps.clock.sleep(this.#delayAfter(error), signal).catch(() => {});
    }
  }

  /** Reads one event stream to its end; returns why it ended. */
  async #readOne(signal: AbortSignal): Promise<unknown> {
    using stream = new LinkedController(signal);
    this.#stream = stream;
    this.#deps.opening();
    let delivered = false;
    try {
      for await (const hint of this.#deps.source.events(stream.signal)) {
        if (!delivered) this.#delivers();
        delivered = true;
        this.#receive(hint);
      }
      return new KubelingError('PLEG_EVENTS_ENDED', 'The runtime event stream has ended');
    } catch (error) {
      return error;
    } finally {
      this.#stream = undefined;
    }
  }

  #delivers(): void {
    this.#backoff.reset();
    this.#deps.metrics?.streamOpened();
    if (this.#logged === 'yes') this.#deps.log.info('Runtime events arrive again');
    this.#logged = 'no';
  }

  #receive(hint: RuntimeHint): void {
    const { clock, metrics, received } = this.#deps;
    if (hint.atMs !== undefined) metrics?.eventArrived(clock.now() - hint.atMs);
    received(hint);
  }

  #delayAfter(error: unknown): number {
    if (isKind(error, 'Cancelled')) return 0;
    this.#deps.metrics?.streamFailed();
    // Logs only the first failed attempt, because an unavailable runtime fails every attempt.
    if (this.#logged === 'no') this.#deps.log.error('Failed to read runtime events', error);
    this.#logged = 'yes';
    if (isKind(error, 'Unsupported')) return unsupportedMs;
    return this.#backoff.fail(this.#deps.clock.monotonicMs());
  }
}
