import type { ServerResponse } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import { type Clock, LruMap, type Timer } from '../../lib/index.ts';
import type { WatchLine } from '../api/responses.ts';
import { failureStatus } from '../api/responses.ts';
import { drained, StalledError, statusOf } from './reply.ts';

/** Some clients give a watch up that says nothing for long; an empty line says nothing and is heard. */
const idleMs = 15_000;

export interface WatchToSend {
  readonly lines: AsyncIterator<WatchLine>;
  /** Its first answer, which was asked for already. */
  readonly first: Promise<IteratorResult<WatchLine>>;
  readonly text: (line: WatchLine) => string | Uint8Array;
  /** Told what broke a watch off. */
  readonly failed: (error: unknown) => void;
}

/**
 * Sends what a watch has to tell until it ends, line by line and each at once. A client that reads slowly is waited
 * for, which holds up nobody else: what happens meanwhile waits at its source, which ends the watch when that becomes
 * too much.
 */
export async function sendWatch(
  outgoing: ServerResponse,
  watch: WatchToSend,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  using beat = new Heartbeat(outgoing, clock);
  const together = new OnePiece(outgoing);
  try {
    for (let next = await watch.first; next.done !== true; next = await watch.lines.next()) {
      if (signal.aborted || outgoing.destroyed) return;
      beat.sent();
      together.begin();
      if (!outgoing.write(watch.text(next.value))) await drained(outgoing, clock, signal);
    }
    outgoing.end();
  } catch (error) {
    endWith(error, outgoing, watch, signal);
  } finally {
    // What it was doing may not listen, and nobody waits for it.
    void watch.lines.return?.().catch(() => {});
  }
}

/** The last line says why, if the client is still there to read it. */
function endWith(error: unknown, outgoing: ServerResponse, watch: WatchToSend, signal: AbortSignal): void {
  if (outgoing.destroyed || error instanceof StalledError) {
    outgoing.destroy();
    return;
  }
  if (!signal.aborted) {
    watch.failed(error);
    outgoing.write(watch.text({ type: 'ERROR', object: failureStatus(statusOf(error)) }));
  }
  outgoing.end();
}

/** What is written before others have their turn is sent in one piece. */
class OnePiece {
  readonly #outgoing: ServerResponse;
  #open = false;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  begin(): void {
    if (this.#open) return;
    this.#open = true;
    this.#outgoing.cork();
    setImmediate(() => {
      this.#open = false;
      this.#outgoing.uncork();
    });
  }
}

/** Writes an empty line whenever nothing was sent for a while. */
class Heartbeat implements Disposable {
  readonly #outgoing: ServerResponse;
  readonly #clock: Clock;
  #sentMs: number;
  #timer: Timer;

  constructor(outgoing: ServerResponse, clock: Clock) {
    this.#outgoing = outgoing;
    this.#clock = clock;
    this.#sentMs = clock.monotonicMs();
    this.#timer = clock.timer(idleMs, () => this.#look());
  }

  sent(): void {
    this.#sentMs = this.#clock.monotonicMs();
  }

  /** Looks once in a while instead of moving a timer with each line. */
  #look(): void {
    const leftMs = this.#sentMs + idleMs - this.#clock.monotonicMs();
    if (leftMs <= 0) {
      if (!this.#outgoing.writableNeedDrain && this.#outgoing.writable) this.#outgoing.write('\n');
      this.sent();
    }
    this.#timer = this.#clock.timer(leftMs <= 0 ? idleMs : leftMs, () => this.#look());
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
  }
}

/** A line as one way to show objects has it. */
interface MadeLine {
  readonly type: string;
  readonly form: string;
  readonly bytes: Buffer;
  readonly madeMs: number;
}

/** Ages are shown in seconds. */
const agesHoldMs = 1_000;
const formsOfObject = 4;

/**
 * Many watch the same, and are told of a change one right after the other: its line is made once for all who want it
 * shown alike.
 */
export class LineTexts {
  readonly #lines = new LruMap<object, readonly MadeLine[]>({ capacity: 64 });
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** `form` names how `shown` shows an object: two of one name show it alike. */
  of({ type, object }: WatchLine, form: string, shown: () => JsonObject): Uint8Array {
    const nowMs = this.#clock.monotonicMs();
    const made = this.#lines.get(object) ?? [];
    const known = made.find((line) => line.form === form && line.type === type);
    if (known !== undefined && nowMs - known.madeMs < agesHoldMs) return known.bytes;
    const bytes = Buffer.from(`{"type":"${type}","object":${JSON.stringify(shown())}}\n`);
    const others = made.filter((line) => line !== known).slice(0, formsOfObject - 1);
    this.#lines.set(object, [{ type, form, bytes, madeMs: nowMs }, ...others]);
    return bytes;
  }
}
