import { onAbort } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { EventFault } from './faults.ts';
import type { Work } from './work.ts';

/** A subscriber that falls so far behind loses its stream: nothing grows without bound. */
const maxWaiting = 4_096;

export interface EventStreamOptions<T> {
  readonly work: Work;
  readonly latencyMs: () => number;
  /** What befalls this event on its way, asked once for each. */
  readonly fault: (item: T) => EventFault | undefined;
  readonly onClose: (stream: EventStream<T>) => void;
}

/** The way of events to one subscriber: each takes its time, in order, unless a fault strikes. */
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

  /** Throws what ended the stream; leaving the loop ends it too. */
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
    // What follows before the first has arrived comes along with it: events never overtake each other.
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
