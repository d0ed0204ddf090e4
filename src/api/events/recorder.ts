import type { Clock, Logger, Random } from '../../lib/index.ts';
import type { ApiClient } from '../client/client.ts';
import { EventCorrelator } from './correlator.ts';
import type { EventNote } from './event-object.ts';
import { objectKey } from './reference.ts';
import { type EventOutcome, EventSender } from './sender.ts';

export interface EventRecorderOptions {
  /** One of its own, with the limits meant for events. */
  readonly client: Pick<ApiClient, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly nodeName: string;
  /** Told of each event's end, to be counted. Must not throw. */
  readonly onOutcome?: (outcome: EventOutcome) => void;
  /** How many may wait; 1,000 unless given. What comes beyond is dropped and counted. */
  readonly queueCapacity?: number;
  /** How many are on their way at once; 8 unless given. */
  readonly parallel?: number;
  /**
   * How long the first event about an object waits for others, unless it is a warning: the news of a pod's start must
   * not hold up the start. Half a second unless given.
   */
  readonly restMs?: number;
}

/** Tells users of the API what happens on the node. Recording never waits, never throws and never grows. */
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
      restMs = 500,
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
      restMs,
    });
  }

  /** How many events are not yet told. */
  get queued(): number {
    return this.#sender.queued;
  }

  record(note: EventNote): void {
    try {
      const correlated = this.#correlator.correlate(note);
      if (correlated.is === 'spam') this.#onOutcome('spam');
      else this.#sender.offer({ ...correlated, lane: objectKey(note.about) });
    } catch (error) {
      this.#logger.error('Cannot record an event', error, { reason: note.reason });
    }
  }

  /** Resolves when all that was recorded has come to its end; for a stop, with a deadline. */
  async drained(signal: AbortSignal): Promise<void> {
    await this.#sender.drained(signal);
  }

  /** What waits is dropped. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender[Symbol.asyncDispose]();
  }
}
