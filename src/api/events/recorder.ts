import type { Clock, Logger, Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { EventCorrelator } from './correlator.ts';
import type { EventInput } from './event-object.ts';
import { eventSubjectKey } from './reference.ts';
import { type EventOutcome, EventSender } from './sender.ts';

export interface EventRecorderOptions {
  /** The API client for events, which has separate rate limits. */
  readonly client: Pick<ApiClient, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly nodeName: string;
  /** Called with the outcome of each event. Must not throw. */
  readonly onOutcome?: (outcome: EventOutcome) => void;
  /** The queue limit; 1,000 unless given. Further events are dropped and counted. */
  readonly queueCapacity?: number;
  /** The number of concurrent calls; 8 unless given. */
  readonly parallel?: number;
  /**
   * How long the first event of an object is delayed so that further ones can be sent with it;
   * warnings are not delayed. This keeps the events of a pod start from slowing down the start. 500
   * ms by default.
   */
  readonly delayMs?: number;
}

/**
 * Sends events of the node to the API. Recording never blocks, never throws and never grows without
 * bound.
 */
export class EventRecorder implements AsyncDisposable {
  readonly #logger: Logger;
  readonly #onOutcome: (outcome: EventOutcome) => void;
  readonly #correlator: EventCorrelator;
  readonly #sender: EventSender;

  constructor(options: EventRecorderOptions) {
    const {
      client,
      clock,
      random,
      logger,
      nodeName,
      queueCapacity = 1_000,
      parallel = 8,
      delayMs = 500,
    } = options;
    const onOutcome = options.onOutcome ?? (() => {});
    this.#logger = logger;
    this.#onOutcome = onOutcome;
    this.#correlator = new EventCorrelator({ clock, random, origin: { component: 'kubelet', nodeName } });
    this.#sender = new EventSender({
      client,
      clock,
      random,
      logger,
      onOutcome,
      queueCapacity,
      parallel,
      delayMs,
    });
  }

  /** The number of events not sent yet. */
  get queued(): number {
    return this.#sender.queued;
  }

  record(note: EventInput): void {
    try {
      const correlated = this.#correlator.correlate(note);
      if (correlated.is === 'spam') this.#onOutcome('spam');
      else this.#sender.offer({ ...correlated, queue: eventSubjectKey(note.about) });
    } catch (error) {
      this.#logger.error('Failed to record event', error, { reason: note.reason });
    }
  }

  /** Resolves when every recorded event has an outcome. Used at shutdown, with a deadline. */
  async drained(signal: AbortSignal): Promise<void> {
    await this.#sender.drained(signal);
  }

  /** Drops all queued events. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
  }
}
