import { asError, type Clock, cancelledError, KubelingError, onAbort, type Timer } from '../../lib/index.ts';
import { type ApiStatus, apiError } from '../client/api-error.ts';
import type { ApiObject, WatchEvent } from '../client/client.ts';
import { parseAnswer } from '../client/parse-answer.ts';
import type { WireAnswer } from '../transport/connection-pool.ts';
import { WatchLineSplitter } from './watch-stream-lines.ts';

export interface WatchStreamOptions {
  /** The request, for messages, for example "watch pods". */
  readonly what: string;
  readonly clock: Clock;
  /**
   * The time limit of the watch: a server that has not ended the watch by then is considered dead.
   */
  readonly deadlineMs: number;
  readonly longestLine: number;
  /** Converts a connection failure into a KubelingError. */
  readonly explain: (error: unknown) => KubelingError;
  /** Called once when the stream releases its connection. */
  readonly onClose: () => void;
}

/** Why a stream ended before the server ended it. */
type Ending =
  | { readonly kind: 'failed'; readonly error: unknown }
  /**
   * The connection pool was retired: the stream ends as if the server had ended it, so the
   * reflector resumes immediately.
   */
  | { readonly kind: 'over' };

/**
 * The events of a watch, read on demand. Until `close` the stream owns the connection, a timer and
 * a listener on the signal; an abort releases all three immediately, whether or not the events are
 * being read.
 */
export class WatchStream implements Disposable {
  readonly #message: WireAnswer;
  readonly #options: WatchStreamOptions;
  readonly #timer: Timer;
  readonly #link: Disposable;
  #receivedMs: number;
  #ending: Ending | undefined;
  #closed = false;

  constructor(message: WireAnswer, options: WatchStreamOptions, signal: AbortSignal) {
    this.#message = message;
    this.#options = options;
    this.#receivedMs = options.clock.monotonicMs();
    // Handles the error of a stream that is destroyed while nothing reads it; Node.js would report
    // it as unhandled.
    message.on('error', () => {});
    this.#timer = options.clock.timer(options.deadlineMs, () =>
      this.#end({ kind: 'failed', error: this.#late() }),
    );
    this.#link = onAbort(signal, (error) => this.#end({ kind: 'failed', error }));
  }

  /** Ends the watch without an error because its connection pool is retired. */
  retire(): void {
    this.#end({ kind: 'over' });
  }

  retireIfUnresponsive(ms: number): void {
    if (this.#options.clock.monotonicMs() - this.#receivedMs >= ms) this.retire();
  }

  /** Yields all events until the server ends the watch. Leaving the loop closes the connection. */
  async *events<T extends ApiObject>(): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const lines = new WatchLineSplitter(this.#options.longestLine);
    try {
      for await (const chunk of this.#message as AsyncIterable<Buffer>) {
        this.#receivedMs = this.#options.clock.monotonicMs();
        for (const line of lines.push(chunk)) {
          yield parseEvent<T>(line, this.#options.what);
          if (this.#ending !== undefined) return this.#finish(this.#ending);
        }
      }
      if (this.#ending === undefined && lines.isMidLine)
        throw new Error('the connection ended in the middle of an event');
    } catch (error) {
      return this.#finish(this.#ending ?? { kind: 'failed', error: this.#explained(error) });
    } finally {
      this.close();
    }
    if (this.#ending !== undefined) this.#finish(this.#ending);
  }

  /**
   * Releases the connection. If the response was read completely, the connection has already
   * returned to the pool.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer.cancel();
    this.#link[Symbol.dispose]();
    if (!this.#message.readableEnded) this.#message.destroy();
    this.#options.onClose();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #end(ending: Ending): void {
    if (this.#closed) return;
    this.#ending = ending;
    this.#message.destroy(
      ending.kind === 'failed' ? asError(ending.error) : cancelledError('The watch is over'),
    );
    // The close is deferred, because a signal that is already aborted calls this method while the
    // constructor still runs.
    queueMicrotask(() => this.close());
  }

  #finish(ending: Ending): void {
    if (ending.kind === 'failed') throw ending.error;
  }

  #explained(error: unknown): unknown {
    return error instanceof KubelingError ? error : this.#options.explain(error);
  }

  #late(): KubelingError {
    const { what, deadlineMs } = this.#options;
    return new KubelingError(
      'API_DEADLINE',
      `Cannot ${what}: the server has not ended it after ${deadlineMs} ms`,
    );
  }
}

const plainTypes: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/**
 * Parses one line of a watch. Throws the error of an ERROR event, and API_BAD_ANSWER for an invalid
 * event.
 */
export function parseEvent<T extends ApiObject>(line: string, what: string): WatchEvent<T> {
  const { type, object } = parseLine(line, what);
  const isObject = typeof object === 'object' && object !== null;
  if (isObject && plainTypes.has(type)) return { type, object } as WatchEvent<T>;
  if (isObject && type === 'ERROR') throw refusal(object as ApiStatus, what);
  throw bad(what, `an event must have a known type and an object: its type is ${JSON.stringify(type)}`);
}

function refusal(status: ApiStatus, what: string): KubelingError {
  const seconds = status.details?.retryAfterSeconds;
  const retryAfterMs = typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined;
  return apiError({ what, status: status.code ?? 500, apiStatus: status, retryAfterMs });
}

function parseLine(line: string, what: string): { readonly type?: unknown; readonly object?: unknown } {
  try {
    const event = parseAnswer(line);
    if (typeof event === 'object' && event !== null) return event;
  } catch {
    // The parser's error is not used, because it quotes the text, which may be a secret.
  }
  throw bad(what, 'an event must be a JSON object');
}

function bad(what: string, why: string): KubelingError {
  return new KubelingError('API_BAD_ANSWER', `Cannot ${what} as ${why}`);
}
