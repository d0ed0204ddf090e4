import type { Event } from '../../kinds/index.ts';
import { cancelledError, type Logger, type Random, type Timer, Waiters } from '../../lib/index.ts';
import { type Delivery, type DeliveryDeps, deliver, type Parcel } from './delivery.ts';
import { ServerGate } from './server-gate.ts';

/** The outcome of an event; dropped means that no user will see it. */
export type EventOutcome = 'sent' | 'refused' | 'gave-up' | 'queue-full' | 'spam' | 'closed';

export interface SenderOptions extends DeliveryDeps {
  readonly random: Random;
  readonly logger: Logger;
  /** Called with each event's outcome. Must not throw. */
  readonly onOutcome: (outcome: EventOutcome) => void;
  readonly queueCapacity: number;
  readonly parallel: number;
  /** How long the first event of an object is delayed for others, unless it is a warning. */
  readonly restMs: number;
}

/** To be sent to the server. */
export interface Sending {
  /** Events of one queue are sent serially. */
  readonly lane: string;
  readonly key: string;
  readonly event: Event;
  readonly told: 'before' | 'never';
}

/**
 * The ordered events of one object. The queue is idle, ready, sending its first event, or waiting
 * to retry it.
 */
interface EventQueue {
  readonly key: string;
  readonly line: Parcel[];
  state: 'resting' | 'in-turn';
  timer?: Timer | undefined;
}

const mostTries = 12;
const retryMs = 10_000;

/**
 * Sends events, several concurrently and those of each object in order. An event without a response
 * is retried and blocks only events of the same object. While the server is unreachable, it is
 * tried with one event and growing delays, and no event is dropped for that.
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

  /** Never blocks. An update of a queued event replaces it. */
  offer(sending: Sending): void {
    const lane = this.#queues.get(sending.lane);
    const waiting = lane?.line.find(({ key }) => key === sending.key);
    if (this.#stop.signal.aborted) this.#options.onOutcome('closed');
    else if (waiting !== undefined) waiting.event = sending.event;
    else if (this.#queued >= this.#options.queueCapacity) this.#refuse();
    else this.#add(lane ?? this.#newQueue(sending.lane), sending);
  }

  /** Resolves when the queue is empty. */
  async drained(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (const lane of this.#queues.values()) if (lane.state === 'resting') this.#endRest(lane);
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
    const lane: EventQueue = { key, line: [], state: 'resting' };
    const { clock, restMs } = this.#options;
    if (restMs > 0) lane.timer = clock.timer(restMs, () => this.#endRest(lane));
    this.#queues.set(key, lane);
    return lane;
  }

  #add(lane: EventQueue, { key, event, told }: Sending): void {
    const via = told === 'before' ? 'patch' : 'create';
    lane.line.push({ key, event, via, tries: 0, answersBefore: 0, unsure: false });
    this.#queued++;
    const isUrgent = event.type !== 'Normal' || lane.timer === undefined;
    if (isUrgent && lane.state === 'resting') this.#endRest(lane);
  }

  #endRest(lane: EventQueue): void {
    lane.timer?.cancel();
    lane.state = 'in-turn';
    this.#makeReady(lane);
    this.#pump();
  }

  #refuse(): void {
    this.#problem('Dropped event, queue is full', { waiting: this.#queued });
    this.#options.onOutcome('queue-full');
  }

  #pump(): void {
    while (this.#sending < this.#gate.width && !this.#stop.signal.aborted) {
      const lane = this.#ready.shift();
      const parcel = lane?.line.shift();
      if (lane === undefined) return;
      if (parcel === undefined) this.#queues.delete(lane.key);
      else void this.#serve(lane, parcel);
    }
  }

  async #serve(lane: EventQueue, parcel: Parcel): Promise<void> {
    this.#sending++;
    const delivery = await deliver(this.#options, parcel, this.#stop.signal).catch(() => undefined);
    this.#sending--;
    if (delivery === undefined || this.#stop.signal.aborted) {
      this.#quit();
      return;
    }
    if (delivery.is === 'failed') this.#again(lane, parcel, delivery);
    else this.#done(lane, parcel, delivery);
    this.#pump();
  }

  #quit(): void {
    if (this.#sending === 0) this.#idle.resolveAll();
  }

  #done(lane: EventQueue, { event }: Parcel, delivery: Exclude<Delivery, { is: 'failed' }>): void {
    this.#gate.answered();
    if (delivery.is === 'sent') this.#lastProblem = '';
    else this.#tellRefusal(event, delivery);
    this.#end(lane, delivery.is);
  }

  #tellRefusal(event: Event, { why, told }: { readonly why: string; readonly told: string }): void {
    const fields = { reason: event.reason, about: event.involvedObject.name, why };
    if (told === 'loudly') this.#problem('API server rejected event', fields);
    else this.#options.logger.v(5)?.info('API server rejected event', fields);
  }

  /** The queued event was replaced during the call. */
  #end(lane: EventQueue, outcome: EventOutcome): void {
    this.#queued--;
    this.#options.onOutcome(outcome);
    this.#makeReady(lane);
    if (this.#queued === 0) this.#drained.resolveAll();
  }

  #makeReady(lane: EventQueue): void {
    lane.timer = undefined;
    if (lane.line.length === 0) this.#queues.delete(lane.key);
    else this.#ready.push(lane);
  }

  #again(lane: EventQueue, parcel: Parcel, { server, why }: Extract<Delivery, { is: 'failed' }>): void {
    this.#problem('Failed to send event, retrying', { why });
    if (server === 'away') this.#gate.failed();
    if (server === 'there') this.#gate.answered();
    // No event is dropped while the server is unreachable: an attempt counts if others got
    // responses since the last one.
    if (parcel.tries === 0 || this.#gate.answers > parcel.answersBefore) parcel.tries++;
    parcel.answersBefore = this.#gate.answers;
    if (parcel.tries >= mostTries) {
      this.#end(lane, 'gave-up');
      return;
    }
    this.#putBack(lane, parcel);
    this.#wait(lane, parcel.tries);
  }

  /** At the head of its queue, with its newest update. */
  #putBack(lane: EventQueue, parcel: Parcel): void {
    const index = lane.line.findIndex(({ key }) => key === parcel.key);
    const [newer] = index < 0 ? [] : lane.line.splice(index, 1);
    if (newer !== undefined) {
      parcel.event = newer.event;
      this.#queued--;
    }
    lane.line.unshift(parcel);
  }

  /**
   * The first delay is random up to its length: nodes that lost one server must not return
   * simultaneously.
   */
  #wait(lane: EventQueue, tries: number): void {
    const { clock, random } = this.#options;
    const ms = tries === 1 ? retryMs * random.next() : retryMs * (1 + 0.1 * random.next());
    lane.timer = clock.timer(ms, () => {
      this.#makeReady(lane);
      this.#pump();
    });
  }

  /** Logs a repeated failure once. */
  #problem(message: string, fields: Readonly<Record<string, string | number | undefined>>): void {
    const problem = `${message}: ${fields['why'] ?? ''}`;
    if (problem === this.#lastProblem) return;
    this.#lastProblem = problem;
    this.#options.logger.warn(message, fields);
  }
}
