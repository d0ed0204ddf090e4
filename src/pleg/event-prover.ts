import {
  type Clock,
  describeError,
  formatDurationMs,
  HintLatch,
  isKind,
  type Logger,
  withDeadline,
} from '../lib/index.ts';
import type { EventTrust } from './event-trust.ts';
import type { EventSource } from './runtime-events.ts';

export interface EventProverDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly trust: EventTrust;
  readonly provoke: EventSource['provoke'];
  /** The start of the newest relist of all pods, in monotonic milliseconds. */
  readonly lastListedMs: () => number | undefined;
  /** The interval of relists while runtime events are trusted. */
  readonly trustedRelistMs: number;
}

/** The result of an attempt to provoke a runtime event. */
type Attempt = 'provoked' | 'failed' | 'impossible';

const periodMs = 30_000;
const retryMs = 1_000;
const provokeMs = 5_000;
/** The time after which an opened event stream is surely subscribed; no response confirms it. */
const openedMs = 100;

/**
 * Ensures that runtime events are trusted only while they provably arrive. It provokes an event
 * when no other event has proved this for a period, and ends the trust after two periods without a
 * proof:
 *
 * - A provoked event that does not arrive is detected by EventTrust itself, within seconds.
 * - A failed or unanswered attempt to provoke an event proves nothing and does not extend the trust.
 * - When events cannot be provoked, regular events are the proof. A quiet node may have none for
 *   days, so the trust lasts while the stream is open and relists succeed: a relist that finds a
 *   change without an event ends the trust. Without relists a missing event would stay undetected.
 */
export class EventProver {
  readonly #deps: EventProverDeps;
  readonly #opened: HintLatch;
  #retryMs = retryMs;

  constructor(deps: EventProverDeps) {
    this.#deps = deps;
    this.#opened = new HintLatch(deps.clock);
  }

  /**
   * Called when an event stream is opened: an event must arrive on it before the stream is trusted.
   */
  opened(): void {
    this.#opened.raise();
  }

  async run(signal: AbortSignal): Promise<void> {
    let waitMs = periodMs;
    while (!signal.aborted) {
      try {
        const why = await this.#opened.wait(waitMs, signal);
        this.#opened.clear();
        if (why === 'hint') await this.#deps.clock.sleep(openedMs, signal);
        waitMs = await this.#prove(signal);
      } catch (error) {
        if (!signal.aborted) this.#deps.log.error('Failed to check that runtime events arrive', error);
        waitMs = periodMs;
      }
    }
  }

  /**
   * Provokes a runtime event unless one has arrived recently, and ends the trust when none has
   * arrived for too long. Returns the time until the next attempt.
   */
  async #prove(signal: AbortSignal): Promise<number> {
    const { trust } = this.#deps;
    if (trust.state === 'trusted' && this.#leftMs('failed') > periodMs) return this.#proven();
    const attempt = await this.#provoke(signal);
    if (trust.state === 'untrusted') return this.#retryDelay();
    if (attempt === 'provoked') return this.#proven();
    const leftMs = this.#leftMs(attempt);
    if (leftMs > 0) return Math.min(leftMs, attempt === 'failed' ? this.#retryDelay() : this.#proven());
    trust.expire(`no proof for ${formatDurationMs(this.#limitMs(attempt))} that events arrive`);
    return this.#retryDelay();
  }

  #proven(): number {
    this.#retryMs = retryMs;
    return periodMs;
  }

  /** The delay of the next attempt, which doubles until an event arrives. */
  #retryDelay(): number {
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(periodMs, 2 * waitMs);
    return waitMs;
  }

  /** How long events are still trusted without another event that proves their arrival. */
  #leftMs(attempt: Exclude<Attempt, 'provoked'>): number {
    const { clock, trust, lastListedMs } = this.#deps;
    const never = Number.NEGATIVE_INFINITY;
    const listedMs = attempt === 'impossible' ? (lastListedMs() ?? never) : never;
    const shownMs = Math.max(trust.lastProofMs ?? never, listedMs);
    return shownMs + this.#limitMs(attempt) - clock.monotonicMs();
  }

  #limitMs(attempt: Exclude<Attempt, 'provoked'>): number {
    return 2 * (attempt === 'impossible' ? Math.max(periodMs, this.#deps.trustedRelistMs) : periodMs);
  }

  async #provoke(signal: AbortSignal): Promise<Attempt> {
    const { clock, log, trust, provoke } = this.#deps;
    if (provoke === undefined) return 'impossible';
    trust.expectProof();
    try {
      await withDeadline({ clock, ms: provokeMs, what: 'provoke an event of the runtime' }, provoke, signal);
      return 'provoked';
    } catch (error) {
      trust.unexpectProof();
      signal.throwIfAborted();
      log.v(2)?.info('Failed to provoke runtime event', { reason: describeError(error) });
      return isKind(error, 'Unsupported') ? 'impossible' : 'failed';
    }
  }
}
