import { onAbort } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { EventFault } from './faults.ts';
import type { Work } from './work.ts';

/**
 * The maximum number of undelivered events of one subscriber; above it the stream ends, which
 * limits memory use.
 */
const maxWaiting = 4_096;

export interface EventStreamOptions<T> {
  readonly work: Work;
  readonly latencyMs: () => number;
  /** Returns the fault of an event; called once for each event. */
  readonly fault: (item: T) => EventFault | undefined;
  readonly onClose: (stream: EventStream<T>) => void;
}

/**
 * Delivers events to one subscriber in their order, each with latency, unless a fault changes this.
 */
export class EventStream<T> {
  readonly #options: EventStreamOptions<T>;
  readonly #underway: T[] = [];
  readonly #arrived: T[] = [];
  #wake: (() => void) | undefined;
  #end: GrpcError | 'closed' | undefined;

  constructor(options: EventStreamOptions<T>) {
    this.#options = options;
  }

  push(item: T): void {
    if (this.#end !== undefined) return;
    const fault = this.#options.fault(item);
    if (fault?.kind === 'cut') this.fail(new GrpcError('UNAVAILABLE', 'error reading from server: EOF'));
    else if (fault?.kind === 'late') this.#later(item, fault.ms);
    else if (fault?.kind !== 'drop') this.#send(item);
    if (fault?.kind === 'duplicate') this.#later(item, fault.ms);
  }

  fail(error: GrpcError): void {
    this.#finish(error);
  }

  /**
   * Yields the events; throws the error that ended the stream. Leaving the loop ends the stream.
   */
  async *items(signal: AbortSignal): AsyncGenerator<T, void, undefined> {
    using _link = onAbort(signal, (reason) => this.#finish(reason as GrpcError));
    try {
      for (;;) {
        const item = this.#arrived.shift();
        if (item !== undefined) yield item;
        else if (this.#end !== undefined) break;
        else await this.#arrival();
      }
    } finally {
      this.#finish('closed');
    }
    if (this.#end instanceof GrpcError) throw this.#end;
  }

  #send(item: T): void {
    this.#underway.push(item);
    if (this.#underway.length + this.#arrived.length > maxWaiting) {
      this.fail(new GrpcError('UNAVAILABLE', 'the subscriber is too slow'));
      return;
    }
    // Events that are sent before an earlier event has arrived are delivered together with it, so
    // that events never overtake each other.
    if (this.#underway.length > 1) return;
    this.#options.work.after(this.#options.latencyMs(), () => {
      for (const arrived of this.#underway.splice(0)) this.#arrive(arrived);
    });
  }

  #later(item: T, ms: number): void {
    this.#options.work.after(ms, () => this.#arrive(item));
  }

  #arrive(item: T): void {
    if (this.#end !== undefined) return;
    this.#arrived.push(item);
    this.#wake?.();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #finish(end: GrpcError | 'closed'): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#underway.length = 0;
    this.#options.onClose(this);
    this.#wake?.();
  }
}
