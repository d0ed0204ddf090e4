import type { ApiObject, WatchEvent } from '../../../src/api/index.ts';
import { onAbort, type Timer } from '../../../src/lib/index.ts';
import type { Work } from '../work.ts';
import type { WatchFault } from './faults.ts';

export type FeedEvent = WatchEvent<ApiObject>;

export interface WatchFeedOptions {
  readonly work: Work;
  readonly nowMs: () => number;
  readonly latencyMs: () => number;
  /** Returns the fault of an event; called once for each event. */
  readonly fault: (event: FeedEvent) => WatchFault | undefined;
  /**
   * The error that a watcher gets when its connection breaks, or when its resource version has
   * expired.
   */
  readonly failure: (how: 'cut' | 'gone') => Error;
  /** The maximum number of undelivered events, not counting the initial ones. */
  readonly maxWaiting: number;
  readonly onEnd: (feed: WatchFeed) => void;
}

interface Underway {
  readonly event: FeedEvent;
  readonly dueMs: number;
}

/**
 * Delivers events to one watcher in their order, each with latency. A watcher with too many
 * undelivered events is disconnected, as by a real API server, which limits memory use.
 */
export class WatchFeed {
  readonly #options: WatchFeedOptions;
  readonly #underway: Underway[] = [];
  readonly #arrived: FeedEvent[] = [];
  readonly #timers: Timer[] = [];
  #next: Timer | undefined;
  #room: number;
  #silent = false;
  #lastDueMs = 0;
  #wake: (() => void) | undefined;
  #end: { readonly error: Error | undefined } | undefined;

  constructor(options: WatchFeedOptions) {
    this.#options = options;
    this.#room = options.maxWaiting;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Adds the initial events, which do not count toward the limit. */
  begin(events: readonly FeedEvent[]): void {
    this.#room += events.length;
    for (const event of events) this.push(event);
  }

  push(event: FeedEvent): void {
    if (this.#end !== undefined || this.#silent) return;
    const fault = this.#options.fault(event);
    if (fault?.kind === 'cut' || fault?.kind === 'gone') this.fail(this.#options.failure(fault.kind));
    else if (fault?.kind === 'end') this.end();
    else this.#send(event, fault?.kind === 'delay' ? fault.ms : 0);
    if (fault?.kind === 'duplicate') this.#send(event, 0);
  }

  /** Drops all further events without an error. */
  silence(): void {
    this.#silent = true;
  }

  /** Schedules a callback that is cancelled when the feed ends. */
  after(ms: number, run: () => void): void {
    this.#timers.push(this.#options.work.after(ms, run));
  }

  end(): void {
    this.#finish({ error: undefined });
  }

  fail(error: Error): void {
    this.#finish({ error });
  }

  /** Yields the events; throws the error that broke the watch. Leaving the loop ends the watch. */
  async *items(signal: AbortSignal): AsyncGenerator<FeedEvent, void, undefined> {
    using _link = onAbort(signal, (reason) => this.fail(reason as Error));
    try {
      for (;;) {
        const event = this.#arrived.shift();
        if (signal.aborted) break;
        if (event !== undefined) yield event;
        else if (this.#end !== undefined) break;
        else await this.#arrival();
      }
    } finally {
      this.end();
    }
    signal.throwIfAborted();
    if (this.#end?.error !== undefined) throw this.#end.error;
  }

  #send(event: FeedEvent, lateMs: number): void {
    const { nowMs, latencyMs } = this.#options;
    if (this.#underway.length + this.#arrived.length >= this.#room) {
      this.end();
      return;
    }
    this.#lastDueMs = Math.max(this.#lastDueMs, nowMs() + latencyMs() + lateMs);
    this.#underway.push({ event, dueMs: this.#lastDueMs });
    if (this.#underway.length === 1) this.#arm();
  }

  #arm(): void {
    const [first] = this.#underway;
    if (first === undefined) return;
    const { work, nowMs } = this.#options;
    this.#next = work.after(Math.max(0, first.dueMs - nowMs()), () => this.#deliver());
  }

  #deliver(): void {
    const now = this.#options.nowMs();
    const due = this.#underway.findIndex(({ dueMs }) => dueMs > now);
    const count = due === -1 ? this.#underway.length : Math.max(1, due);
    for (const { event } of this.#underway.splice(0, count)) this.#arrived.push(event);
    this.#arm();
    this.#wake?.();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #finish(end: { readonly error: Error | undefined }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#underway.length = 0;
    this.#next?.cancel();
    for (const timer of this.#timers.splice(0)) timer.cancel();
    this.#options.onEnd(this);
    this.#wake?.();
  }
}
