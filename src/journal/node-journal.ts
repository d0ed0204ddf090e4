import { type Clock, type Instant, type Logger, LogOnce, Ring } from '../lib/index.ts';
import type { PodEvent } from '../pods/index.ts';

/**
 * An event about the Node object as API clients receive it; without a field path, because it always
 * concerns the node itself.
 */
export type NodeEvent = Omit<PodEvent, 'fieldPath'>;

export type NodeEntry =
  | (NodeEvent & {
      readonly is: 'event';
      readonly at: Instant;
      readonly since: Instant;
      readonly count: number;
    })
  /** An entry for which Kubernetes has no event; API clients do not receive it. */
  | { readonly is: 'note'; readonly at: Instant; readonly message: string };

export interface NodeStory {
  readonly name: string;
  readonly entries: readonly NodeEntry[];
  /** How many older entries were dropped because the journal was full. */
  readonly dropped: number;
}

export interface NodeJournalOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly nodeName: string;
  /** Called with each event, to send it to the API server. */
  readonly tell?: ((event: NodeEvent) => void) | undefined;
  /** The maximum number of entries; 500 by default. */
  readonly capacity?: number;
}

/** Records the history of the node in bounded memory. Each entry is logged too. */
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

  /**
   * Records a lasting problem as an event when it begins and when its message changes, until
   * `recovered` is called with its key.
   */
  problem(key: string, event: NodeEvent): void {
    if (this.#problems.isNew(key, event.message)) this.event(event);
  }

  /**
   * Records a lasting problem that has no Kubernetes event. Records it once, even if its message
   * changes.
   */
  noteProblem(key: string, message: string): void {
    if (this.#problems.has(key)) return;
    this.#problems.isNew(key, message);
    this.#entries.push({ is: 'note', at: this.#options.clock.now(), message });
    this.#options.logger.warn(message);
  }

  /** Records once that the problem has ended; does nothing if none was recorded under the key. */
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
