import type { ServerResponse } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import { type Clock, LruMap, type Timer } from '../../lib/index.ts';
import type { ServedWatchEvent } from '../api/responses.ts';
import { failureStatus } from '../api/responses.ts';
import { drained, StalledError, statusBodyOf } from './reply.ts';

/**
 * The interval after which an idle watch sends an empty line: some clients close idle watches, and
 * clients ignore the line.
 */
const idleMs = 15_000;

export interface OutgoingWatch {
  readonly events: AsyncIterator<ServedWatchEvent>;
  /** The promise of the first event, which was already requested. */
  readonly first: Promise<IteratorResult<ServedWatchEvent>>;
  readonly encode: (line: ServedWatchEvent) => string | Uint8Array;
  /** Called when the watch fails. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Sends each watch event immediately until the watch ends. A slow client delays only itself: its
 * events queue up at the watcher, which ends the watch when the queue is full.
 */
export async function sendWatch(
  outgoing: ServerResponse,
  watch: OutgoingWatch,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  using beat = new Heartbeat(outgoing, clock);
  const writes = new CorkedWrites(outgoing);
  try {
    for (let next = await watch.first; next.done !== true; next = await watch.events.next()) {
      if (signal.aborted || outgoing.destroyed) return;
      beat.sent();
      writes.cork();
      if (!outgoing.write(watch.encode(next.value))) await drained(outgoing, clock, signal);
    }
    outgoing.end();
  } catch (error) {
    endWithError(error, outgoing, watch, signal);
  } finally {
    // Ending the generator of events is not awaited, because the generator may not react to the
    // abort.
    void watch.events.return?.().catch(() => {});
  }
}

/** Sends the error as the last event, if the client is still connected. */
function endWithError(
  error: unknown,
  outgoing: ServerResponse,
  watch: OutgoingWatch,
  signal: AbortSignal,
): void {
  if (outgoing.destroyed || error instanceof StalledError) {
    outgoing.destroy();
    return;
  }
  if (!signal.aborted) {
    watch.onFailure(error);
    outgoing.write(watch.encode({ type: 'ERROR', object: failureStatus(statusBodyOf(error)) }));
  }
  outgoing.end();
}

/** Sends all writes of one event loop iteration in one TLS record. */
class CorkedWrites {
  readonly #outgoing: ServerResponse;
  #open = false;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  cork(): void {
    if (this.#open) return;
    this.#open = true;
    this.#outgoing.cork();
    setImmediate(() => {
      this.#open = false;
      this.#outgoing.uncork();
    });
  }
}

/** Sends an empty line after each idle interval of a watch. */
class Heartbeat implements Disposable {
  readonly #outgoing: ServerResponse;
  readonly #clock: Clock;
  #sentMs: number;
  #timer: Timer;

  constructor(outgoing: ServerResponse, clock: Clock) {
    this.#outgoing = outgoing;
    this.#clock = clock;
    this.#sentMs = clock.monotonicMs();
    this.#timer = clock.timer(idleMs, () => this.#tick());
  }

  sent(): void {
    this.#sentMs = this.#clock.monotonicMs();
  }

  /**
   * Compares the time of the last event when the timer fires, instead of setting a new timer for
   * each event.
   */
  #tick(): void {
    const leftMs = this.#sentMs + idleMs - this.#clock.monotonicMs();
    if (leftMs <= 0) {
      if (!this.#outgoing.writableNeedDrain && this.#outgoing.writable) this.#outgoing.write('\n');
      this.sent();
    }
    this.#timer = this.#clock.timer(leftMs <= 0 ? idleMs : leftMs, () => this.#tick());
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
  }
}

/** A watch event in one output format. */
interface EncodedEvent {
  readonly type: string;
  readonly form: string;
  readonly bytes: Buffer;
  readonly encodedMs: number;
}

/** The time for which an encoded event is cached, because tables show ages in seconds. */
const maxAgeMs = 1_000;
const maxFormsPerObject = 4;

/**
 * Caches encoded watch events. The watchers of a resource receive a change one after the other, and
 * those with the same output format share its encoding.
 */
export class EncodedEvents {
  readonly #events = new LruMap<object, readonly EncodedEvent[]>({ capacity: 64 });
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Returns the encoded event. `form` identifies the output format of `shown`. */
  of({ type, object }: ServedWatchEvent, form: string, shown: () => JsonObject): Uint8Array {
    const nowMs = this.#clock.monotonicMs();
    const encoded = this.#events.get(object) ?? [];
    const known = encoded.find((line) => line.form === form && line.type === type);
    if (known !== undefined && nowMs - known.encodedMs < maxAgeMs) return known.bytes;
    const bytes = Buffer.from(`{"type":"${type}","object":${JSON.stringify(shown())}}\n`);
    const others = encoded.filter((line) => line !== known).slice(0, maxFormsPerObject - 1);
    this.#events.set(object, [{ type, form, bytes, encodedMs: nowMs }, ...others]);
    return bytes;
  }
}
