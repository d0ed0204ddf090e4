import {
  type Any,
  ContainerEvent,
  type ContainerEventResponse,
  type ContainerEventType,
  type Envelope,
  TaskEvent,
  TaskExit,
} from '../../src/cri/index.ts';
import type { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import { eventFilter } from './event-filter.ts';
import { EventStream } from './event-stream.ts';
import type { EventFault, PassingEvent } from './faults.ts';
import type { Rules } from './mutations.ts';
import type { Work } from './work.ts';

/** The topics of containerd's own events, with the message type of each. */
const topicTypes = {
  '/containers/create': 'ContainerCreate',
  '/containers/delete': 'ContainerDelete',
  '/tasks/create': 'TaskCreate',
  '/tasks/start': 'TaskStart',
  '/tasks/oom': 'TaskOOM',
  '/tasks/exit': 'TaskExit',
  '/tasks/delete': 'TaskDelete',
  '/tasks/exec-added': 'TaskExecAdded',
  '/tasks/exec-started': 'TaskExecStarted',
} as const;

export type EventTopic = keyof typeof topicTypes;

/** The exit of a process; for exec processes `id` differs from the ID of the container. */
export interface ExitNews {
  readonly containerId: string;
  readonly id: string;
  readonly pid: number;
  readonly exitCode: number;
  readonly at: bigint;
}

export type CriEventType = Exclude<ContainerEventType, 'UNRECOGNIZED'>;

type EnvelopeInit = MessageInit<Envelope> & {
  readonly topic: string;
  readonly namespace: string;
  /**
   * The ID of the event's container or sandbox, so that a fault rule need not decode the event;
   * this field is not sent to subscribers.
   */
  readonly containerId: string;
};
type CriEvent = MessageInit<ContainerEventResponse> & {
  readonly containerId: string;
  readonly containerEventType: CriEventType;
};

export interface EventHubOptions {
  readonly work: Work;
  readonly rules: Rules;
  readonly latencyMs: () => number;
  readonly nowNs: () => bigint;
  readonly nowMs: () => number;
  readonly fault: (event: PassingEvent) => EventFault | undefined;
}

/** How long CRI events are buffered when there is no subscriber. */
const backlogMs = 5 * 60_000;
const maxBacklog = 1_000;

interface Kept {
  readonly event: CriEvent;
  readonly untilMs: number;
}

/** Delivers events to subscribers as containerd events and as CRI events. */
export class EventHub {
  readonly #options: EventHubOptions;
  readonly #envelopes = new Set<EventStream<EnvelopeInit>>();
  readonly #filters = new Map<EventStream<EnvelopeInit>, (event: EnvelopeInit) => boolean>();
  readonly #cri = new Set<EventStream<CriEvent>>();
  #backlog: Kept[] = [];

  constructor(options: EventHubOptions) {
    this.#options = options;
  }

  get subscribers(): number {
    return this.#envelopes.size + this.#cri.size;
  }

  /** Publishes a containerd event about a container or sandbox. */
  publish(topic: Exclude<EventTopic, '/tasks/exit'>, id: string): void {
    if (this.#isQuiet()) return;
    const value = topic.startsWith('/containers/')
      ? ContainerEvent.encode({ id })
      : TaskEvent.encode({ containerId: id });
    this.#send(topic, id, value);
  }

  publishExit({ containerId, id, pid, exitCode, at }: ExitNews): void {
    if (this.#isQuiet()) return;
    const exit = { containerId, id, pid, exitStatus: exitCode, exitedAt: timestampOf(at) };
    this.#send('/tasks/exit', containerId, TaskExit.encode(exit));
  }

  /** Publishes a CRI event; `describe` returns the statuses that the event contains. */
  publishCri(
    type: CriEventType,
    containerId: string,
    describe: () => Pick<MessageInit<ContainerEventResponse>, 'podSandboxStatus' | 'containersStatuses'>,
  ): void {
    if (this.#options.rules.events === 'silent') return;
    const event: CriEvent = {
      containerId,
      containerEventType: type,
      createdAt: this.#options.nowNs(),
      ...describe(),
    };
    for (const stream of this.#cri) stream.push(event);
    if (this.#cri.size > 0) return;
    this.#backlog.push({ event, untilMs: this.#options.nowMs() + backlogMs });
    if (this.#backlog.length > maxBacklog) this.#backlog.shift();
  }

  subscribe(filters: readonly string[]): EventStream<EnvelopeInit> {
    const accepts = eventFilter(filters);
    const stream = this.#newStream<EnvelopeInit>(
      (event) => ({ stream: 'containerd', topic: event.topic, containerId: event.containerId }),
      (closed) => {
        this.#envelopes.delete(closed);
        this.#filters.delete(closed);
      },
    );
    this.#envelopes.add(stream);
    this.#filters.set(stream, accepts);
    return stream;
  }

  subscribeCri(): EventStream<CriEvent> {
    const stream = this.#newStream<CriEvent>(
      (event) => ({ stream: 'cri', topic: event.containerEventType, containerId: event.containerId }),
      (closed) => this.#cri.delete(closed),
    );
    const nowMs = this.#options.nowMs();
    // The stream is registered before the buffered events are sent, because these may end the
    // stream, which unregisters it.
    this.#cri.add(stream);
    for (const { event, untilMs } of this.#backlog) if (untilMs > nowMs) stream.push(event);
    this.#backlog = [];
    return stream;
  }

  /** Ends every stream and drops the buffered events, because the runtime was killed. */
  failAll(error: GrpcError): void {
    for (const stream of [...this.#envelopes, ...this.#cri]) stream.fail(error);
    this.#backlog = [];
  }

  #newStream<T>(
    passing: (event: T) => PassingEvent,
    onClose: (stream: EventStream<T>) => void,
  ): EventStream<T> {
    const { work, latencyMs, fault } = this.#options;
    return new EventStream({ work, latencyMs, onClose, fault: (event) => fault(passing(event)) });
  }

  /** Publishes an event that a test sends through the runtime. */
  publishForeign(topic: string, event: MessageInit<Any>): void {
    if (this.#isQuiet()) return;
    this.#distribute({
      timestamp: timestampOf(this.#options.nowNs()),
      namespace: 'k8s.io',
      topic,
      event,
      containerId: '',
    });
  }

  #isQuiet(): boolean {
    return this.#envelopes.size === 0 || this.#options.rules.events === 'silent';
  }

  #send(topic: EventTopic, containerId: string, value: Uint8Array): void {
    const envelope: EnvelopeInit = {
      timestamp: timestampOf(this.#options.nowNs()),
      namespace: 'k8s.io',
      topic,
      event: { typeUrl: `containerd.events.${topicTypes[topic]}`, value },
      containerId,
    };
    this.#distribute(envelope);
  }

  #distribute(envelope: EnvelopeInit): void {
    for (const stream of this.#envelopes) if (this.#filters.get(stream)?.(envelope)) stream.push(envelope);
  }
}

function timestampOf(nanos: bigint): { readonly seconds: bigint; readonly nanos: number } {
  return { seconds: nanos / 1_000_000_000n, nanos: Number(nanos % 1_000_000_000n) };
}
