import { type Instant, Ring, TypedEvents } from '../../src/lib/index.ts';
import type { EventFault, Fault } from './faults.ts';
import type { ProcessEndCause } from './process.ts';

interface SandboxFacts {
  readonly id: string;
  readonly podUid: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly attempt: number;
}

interface ContainerFacts {
  readonly id: string;
  readonly sandboxId: string;
  readonly podUid: string;
  readonly name: string;
  readonly attempt: number;
}

/**
 * One entry of the actual history of the simulated machine, regardless of what the runtime reports.
 */
export type TraceEntry = { readonly at: Instant } & (
  | ({ readonly kind: 'sandbox-started' } & SandboxFacts)
  /** The process of the sandbox has exited; its containers may still run. */
  | ({ readonly kind: 'sandbox-stopped' } & SandboxFacts)
  | ({ readonly kind: 'sandbox-removed' } & SandboxFacts)
  | ({ readonly kind: 'container-created' } & ContainerFacts)
  | ({ readonly kind: 'container-started' } & ContainerFacts)
  | ({ readonly kind: 'container-start-failed'; readonly message: string } & ContainerFacts)
  | ({ readonly kind: 'container-signalled'; readonly signal: string } & ContainerFacts)
  | ({
      readonly kind: 'container-exited';
      readonly exitCode: number;
      readonly cause: ProcessEndCause;
    } & ContainerFacts)
  | ({ readonly kind: 'container-removed' } & ContainerFacts)
  | { readonly kind: 'image-pulled' | 'image-removed'; readonly reference: string }
  | { readonly kind: 'runtime-down' | 'runtime-up'; readonly state: string }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'call-fault'; readonly method: string; readonly fault: Fault['kind'] }
  | { readonly kind: 'event-fault'; readonly topic: string; readonly fault: EventFault['kind'] }
);

export type TraceKind = TraceEntry['kind'];

type WithoutTime<Entry> = Entry extends unknown ? Omit<Entry, 'at'> : never;

/** The newest history entries; notifies subscribers of new ones. */
export class Trace {
  readonly #ring: Ring<TraceEntry>;
  readonly #events = new TypedEvents<{ entry: TraceEntry }>((error) => {
    // Subscribers check invariants, so an error they throw must end the test.
    queueMicrotask(() => {
      throw error;
    });
  });
  readonly #now: () => Instant;

  constructor(capacity: number, now: () => Instant) {
    this.#ring = new Ring(capacity);
    this.#now = now;
  }

  add(entry: WithoutTime<TraceEntry>): void {
    const stamped = { ...entry, at: this.#now() } as TraceEntry;
    this.#ring.push(stamped);
    this.#events.emit('entry', stamped);
  }

  /** Calls the subscriber synchronously for each new entry. */
  subscribe(subscriber: (entry: TraceEntry) => void): Disposable {
    return this.#events.on('entry', subscriber);
  }

  entries(): readonly TraceEntry[] {
    return this.#ring.toArray();
  }

  /** How many entries were dropped because the capacity was exceeded. */
  get dropped(): number {
    return this.#ring.dropped;
  }
}
