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
  /** When the newest complete listing was asked for, in monotonic milliseconds. */
  readonly lastListedMs: () => number | undefined;
  /** Between looks at all pods while events are trusted. */
  readonly trustedRelistMs: number;
}

/** How a try to provoke an event ended. */
type Attempt = 'provoked' | 'failed' | 'impossible';

const periodMs = 30_000;
const retryMs = 1_000;
const provokeMs = 5_000;
/** A stream that was opened is silent until it stands, and nobody says when that is. */
const openedMs = 100;

/**
 * Shows from time to time that events arrive when nothing else has shown it, and ends the trust in them when that
 * cannot be shown for two periods:
 *
 * - An event that was provoked and does not come is judged by the trust itself, within seconds.
 * - A try that fails, or to which the runtime does not answer, is no proof: trust lasts as long as the last one does.
 * - Where nothing can be provoked, what happens anyway is the proof. Nothing may happen on a quiet node for days, so
 *   trust lasts there while the stream is open and pods can be listed: each listing would show a change that no event
 *   told of, which ends trust. Without listings nothing would show it.
 */
export class EventProver {
  readonly #deps: EventProverDeps;
  readonly #opened: HintLatch;
  #retryMs = retryMs;

  constructor(deps: EventProverDeps) {
    this.#deps = deps;
    this.#opened = new HintLatch(deps.clock);
  }

  /** A stream is being opened, which must prove itself. */
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
        if (!signal.aborted) this.#deps.log.error('Cannot see whether events of the runtime arrive', error);
        waitMs = periodMs;
      }
    }
  }

  /** Answers when the next one is due. */
  async #prove(signal: AbortSignal): Promise<number> {
    const { trust } = this.#deps;
    if (trust.state === 'trusted' && this.#leftMs('failed') > periodMs) return this.#proven();
    const attempt = await this.#provoke(signal);
    if (trust.state === 'untrusted') return this.#retryDelay();
    if (attempt === 'provoked') return this.#proven();
    const leftMs = this.#leftMs(attempt);
    if (leftMs > 0) return Math.min(leftMs, attempt === 'failed' ? this.#retryDelay() : this.#proven());
    trust.expire(`nothing has shown for ${formatDurationMs(this.#limitMs(attempt))} that events arrive`);
    return this.#retryDelay();
  }

  #proven(): number {
    this.#retryMs = retryMs;
    return periodMs;
  }

  /** Ever later while events do not come. */
  #retryDelay(): number {
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(periodMs, 2 * waitMs);
    return waitMs;
  }

  /** How long what was last shown still counts. */
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
      log.v(2)?.info('Cannot provoke an event', { reason: describeError(error) });
      return isKind(error, 'Unsupported') ? 'impossible' : 'failed';
    }
  }
}
