import { type Clock, type Instant, type Logger, LogOnce, Ring } from '../lib/index.ts';
import type { PodEvent } from '../pods/index.ts';

/** An event of the node as users of the API know them; no part of the node is meant but the whole. */
export type NodeEvent = Omit<PodEvent, 'fieldPath'>;

export type NodeEntry =
  | (NodeEvent & {
      readonly is: 'event';
      readonly at: Instant;
      readonly since: Instant;
      readonly count: number;
    })
  /** Ours alone: the API has no event for it. */
  | { readonly is: 'note'; readonly at: Instant; readonly message: string };

export interface NodeStory {
  readonly name: string;
  readonly entries: readonly NodeEntry[];
  /** How many older entries made room. */
  readonly dropped: number;
}

export interface NodeJournalOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly nodeName: string;
  /** Told of each event, for users of the API. */
  readonly tell?: ((event: NodeEvent) => void) | undefined;
  /** How much is remembered; 500 entries unless given. */
  readonly capacity?: number;
}

/** What happens to the node as a whole, in memory that does not grow. Each entry is one line of the log too. */
export class NodeJournal {
  readonly #options: NodeJournalOptions;
  readonly #entries: Ring<NodeEntry>;
  readonly #problems = new LogOnce();

  constructor(options: NodeJournalOptions) {
    this.#options = options;
    this.#entries = new Ring(options.capacity ?? 500);
  }

  event(event: NodeEvent): void {
    const { type, reason, message } = event;
    const at = this.#options.clock.now();
    const last = this.#entries.last;
    if (last?.is === 'event' && last.reason === reason && last.message === message && last.type === type)
      this.#entries.replaceLast({ ...last, at, count: last.count + 1 });
    else this.#entries.push({ type, reason, message, is: 'event', at, since: at, count: 1 });
    this.#options.tell?.(event);
    if (type === 'Warning') this.#options.logger.warn(message, { reason });
    else this.#options.logger.info(message, { reason });
  }

  note(message: string): void {
    this.#entries.push({ is: 'note', at: this.#options.clock.now(), message });
    this.#options.logger.info(message);
  }

  /** Something is wrong, and stays so until it is mended: an event when it begins, and when it becomes another. */
  problem(key: string, event: NodeEvent): void {
    if (this.#problems.isNew(key, event.message)) this.event(event);
  }

  /** The same where the API has no event for it, and however the trouble changes. */
  noteProblem(key: string, message: string): void {
    if (this.#problems.has(key)) return;
    this.#problems.isNew(key, message);
    this.#entries.push({ is: 'note', at: this.#options.clock.now(), message });
    this.#options.logger.warn(message);
  }

  /** Says once that it is over; nothing where no trouble was told. */
  recovered(key: string, message: string): void {
    if (this.#problems.clear(key)) this.note(message);
  }

  story(): NodeStory {
    return {
      name: this.#options.nodeName,
      entries: [...this.#entries],
      dropped: this.#entries.dropped,
    };
  }
}
