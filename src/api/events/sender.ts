import type { Event } from '../../kinds/index.ts';
import { cancelledError, type Logger, type Random, type Timer, Waiters } from '../../lib/index.ts';
import { type Delivery, type DeliveryDeps, deliver, type QueuedEvent } from './delivery.ts';
import { ServerGate } from './server-gate.ts';

/** The final outcome of an event; only 'sent' events are visible in the API. */
export type EventOutcome = 'sent' | 'refused' | 'gave-up' | 'queue-full' | 'spam' | 'closed';

export interface SenderOptions extends DeliveryDeps {
  readonly random: Random;
  readonly logger: Logger;
  /** Called with the outcome of each event. Must not throw. */
  readonly onOutcome: (outcome: EventOutcome) => void;
  readonly queueCapacity: number;
  readonly parallel: number;
  /**
   * How long the first event of an object is delayed so that further ones can be sent with it;
   * warnings are not delayed.
   */
  readonly delayMs: number;
}

/** An event to be sent to the server. */
export interface Sending {
  /** Events of one queue are sent serially. */
  readonly queue: string;
  readonly key: string;
  readonly event: Event;
  readonly sent: 'before' | 'never';
}

/**
 * The ordered events of one object. The queue is idle, ready, sending its first event, or waiting
 * to retry it.
 */
interface EventQueue {
  readonly key: string;
  readonly events: QueuedEvent[];
  state: 'delayed' | 'ready';
  timer?: Timer | undefined;
}

const mostTries = 12;
const retryMs = 10_000;

/**
 * Sends events: those of different objects concurrently, those of one object in order. An event
 * without a response is retried, and blocks only later events of the same object. While the server
 * is unreachable, a single event probes it with growing delays, and no event is dropped.
 */
export class EventSender implements AsyncDisposable {
  readonly #options: SenderOptions;
  readonly #queues = new Map<string, EventQueue>();
  readonly #ready: EventQueue[] = [];
  readonly #gate: ServerGate;
  readonly #stop = new AbortController();
  readonly #drained = new Waiters<void>();
  readonly #idle = new Waiters<void>();
  #queued = 0;
  #sending = 0;
  #lastProblem = '';

  constructor(options: SenderOptions) {
    this.#options = options;
    const { clock, random, parallel } = options;
    this.#gate = new ServerGate({ clock, random, width: parallel, onOpen: () => this.#pump() });
  }

  /** The number of events not sent yet. */
  get queued(): number {
    return this.#queued;
  }

  /**
   * Queues an event without blocking; an event with the same key that is still queued is replaced.
   */
  offer(sending: Sending): void {
    const queue = this.#queues.get(sending.queue);
    const waiting = queue?.events.find(({ key }) => key === sending.key);
    if (this.#stop.signal.aborted) this.#options.onOutcome('closed');
    else if (waiting !== undefined) waiting.event = sending.event;
    else if (this.#queued >= this.#options.queueCapacity) this.#refuse();
    else this.#add(queue ?? this.#newQueue(sending.queue), sending);
  }

  /** Resolves when no event is queued. */
  async drained(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (const queue of this.#queues.values()) if (queue.state === 'delayed') this.#endDelay(queue);
    if (this.#queued > 0) await this.#drained.wait(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(cancelledError('Event sending has stopped'));
    this.#gate[Symbol.dispose]();
    for (const { timer } of this.#queues.values()) timer?.cancel();
    for (let left = this.#queued; left > 0; left--) this.#options.onOutcome('closed');
    this.#queues.clear();
    this.#ready.length = 0;
    this.#queued = 0;
    this.#drained.resolveAll();
    if (this.#sending > 0) await this.#idle.wait(new AbortController().signal);
  }

  #newQueue(key: string): EventQueue {
    const queue: EventQueue = { key, events: [], state: 'delayed' };
    const { clock, delayMs } = this.#options;
    if (delayMs > 0) queue.timer = clock.timer(delayMs, () => this.#endDelay(queue));
    this.#queues.set(key, queue);
    return queue;
  }

  #add(queue: EventQueue, { key, event, sent }: Sending): void {
    const via = sent === 'before' ? 'patch' : 'create';
    queue.events.push({ key, event, via, tries: 0, responsesBefore: 0, mayExist: false });
    this.#queued++;
    const isUrgent = event.type !== 'Normal' || queue.timer === undefined;
    if (isUrgent && queue.state === 'delayed') this.#endDelay(queue);
  }

  #endDelay(queue: EventQueue): void {
    queue.timer?.cancel();
    queue.state = 'ready';
    this.#makeReady(queue);
    this.#pump();
  }

  #refuse(): void {
    this.#warnOnce('Dropped event, queue is full', { waiting: this.#queued });
    this.#options.onOutcome('queue-full');
  }

  #pump(): void {
    while (this.#sending < this.#gate.width && !this.#stop.signal.aborted) {
      const queue = this.#ready.shift();
      const queued = queue?.events.shift();
      if (queue === undefined) return;
      if (queued === undefined) this.#queues.delete(queue.key);
      else void this.#serve(queue, queued);
    }
  }

  async #serve(queue: EventQueue, queued: QueuedEvent): Promise<void> {
    this.#sending++;
    const delivery = await deliver(this.#options, queued, this.#stop.signal).catch(() => undefined);
    this.#sending--;
    if (delivery === undefined || this.#stop.signal.aborted) {
      this.#resolveIdle();
      return;
    }
    if (delivery.is === 'failed') this.#retryLater(queue, queued, delivery);
    else this.#done(queue, queued, delivery);
    this.#pump();
  }

  #resolveIdle(): void {
    if (this.#sending === 0) this.#idle.resolveAll();
  }

  #done(queue: EventQueue, { event }: QueuedEvent, delivery: Exclude<Delivery, { is: 'failed' }>): void {
    this.#gate.succeeded();
    if (delivery.is === 'sent') this.#lastProblem = '';
    else this.#logRefusal(event, delivery);
    this.#end(queue, delivery.is);
  }

  #logRefusal(event: Event, { why, log }: { readonly why: string; readonly log: string }): void {
    const fields = { reason: event.reason, about: event.involvedObject.name, why };
    if (log === 'warn') this.#warnOnce('API server rejected event', fields);
    else this.#options.logger.v(5)?.info('API server rejected event', fields);
  }

  /** Completes an event: reports its outcome and makes its queue ready for the next event. */
  #end(queue: EventQueue, outcome: EventOutcome): void {
    this.#queued--;
    this.#options.onOutcome(outcome);
    this.#makeReady(queue);
    if (this.#queued === 0) this.#drained.resolveAll();
  }

  #makeReady(queue: EventQueue): void {
    queue.timer = undefined;
    if (queue.events.length === 0) this.#queues.delete(queue.key);
    else this.#ready.push(queue);
  }

  #retryLater(
    queue: EventQueue,
    queued: QueuedEvent,
    { server, why }: Extract<Delivery, { is: 'failed' }>,
  ): void {
    this.#warnOnce('Failed to send event, retrying', { why });
    if (server === 'away') this.#gate.failed();
    if (server === 'there') this.#gate.succeeded();
    // An attempt counts only if the server has responded to other events since the previous
    // attempt, so no event is dropped while the server is unreachable.
    if (queued.tries === 0 || this.#gate.responses > queued.responsesBefore) queued.tries++;
    queued.responsesBefore = this.#gate.responses;
    if (queued.tries >= mostTries) {
      this.#end(queue, 'gave-up');
      return;
    }
    this.#requeue(queue, queued);
    this.#wait(queue, queued.tries);
  }

  /**
   * Puts the event back at the head of its queue. If a newer version of the event was queued during
   * the call, puts back the newer version.
   */
  #requeue(queue: EventQueue, queued: QueuedEvent): void {
    const index = queue.events.findIndex(({ key }) => key === queued.key);
    const [newer] = index < 0 ? [] : queue.events.splice(index, 1);
    if (newer !== undefined) {
      queued.event = newer.event;
      this.#queued--;
    }
    queue.events.unshift(queued);
  }

  /**
   * Waits before the next attempt. The first delay is fully random, so that nodes that lost the
   * same server do not all reconnect at the same time.
   */
  #wait(queue: EventQueue, tries: number): void {
    const { clock, random } = this.#options;
    const ms = tries === 1 ? retryMs * random.next() : retryMs * (1 + 0.1 * random.next());
    queue.timer = clock.timer(ms, () => {
      this.#makeReady(queue);
      this.#pump();
    });
  }

  /** Logs a repeated failure once. */
  #warnOnce(message: string, fields: Readonly<Record<string, string | number | undefined>>): void {
    const problem = `${message}: ${fields['why'] ?? ''}`;
    if (problem === this.#lastProblem) return;
    this.#lastProblem = problem;
    this.#options.logger.warn(message, fields);
  }
}
