import { type ContainerLifecycle, unseenCode } from './container-lifecycle.ts';
import type { SimulatorContext } from './context.ts';
import { Latch } from './latch.ts';
import {
  type ContainerRecord,
  containerState,
  hasProcess,
  type SandboxRecord,
  sandboxFacts,
} from './records.ts';

export interface RestartOptions {
  /**
   * The state of the runtime after the restart: everything; nothing, as on a new disk; or the
   * existence of records without their state.
   */
  readonly state: 'kept' | 'lost' | 'unknown';
  /** Whether the containers keep running, as they do unless the machine restarts. */
  readonly processes?: 'kept' | 'killed';
  readonly images?: 'kept' | 'lost';
  /** The downtime; 1 s unless given. */
  readonly downMs?: number;
}

/** The effects of killing the runtime, and its recovery after the restart. */
export class Recovery {
  readonly #context: SimulatorContext;
  readonly #containers: ContainerLifecycle;

  constructor(context: SimulatorContext, containers: ContainerLifecycle) {
    this.#context = context;
    this.#containers = containers;
  }

  /** At the moment of the kill. Losing the state means losing the machine. */
  die({ state, processes, images }: RestartOptions): void {
    const { store } = this.#context;
    for (const record of store.containers.all()) {
      for (const exec of record.execs) exec.kill();
      if (state === 'lost' || processes === 'killed')
        record.process?.endWith({ exitCode: unseenCode, cause: 'lost' });
    }
    if (state === 'lost' || processes === 'killed')
      for (const record of store.sandboxes.all()) this.#cutOff(record);
    if (state === 'lost') {
      for (const record of [...store.sandboxes.all(), ...store.startingSandboxes])
        this.#freeAddresses(record);
      store.clear();
    }
    if (images === 'lost') this.#context.images.clear();
  }

  /** After the restart. */
  recover({ state }: RestartOptions): void {
    const { store } = this.#context;
    this.#settleUnfinished();
    for (const record of store.sandboxes.all()) this.#loadSandbox(record, state);
    for (const record of store.containers.all()) this.#loadContainer(record, state);
  }

  /** It is random whether the record of an incomplete operation had reached the disk. */
  #settleUnfinished(): void {
    const { store, random } = this.#context;
    const sandboxes = [...store.startingSandboxes];
    const containers = [...store.creatingContainers];
    store.startingSandboxes.clear();
    store.creatingContainers.clear();
    for (const record of sandboxes) {
      if (random.next() < 0.5) this.#leaveSandbox(record);
      else this.#dropSandbox(record);
    }
    for (const record of containers) {
      if (random.next() < 0.5 && store.sandboxes.has(record.sandbox)) this.#leaveContainer(record);
      else store.containerNames.release(record.name, record.id);
    }
  }

  /** Its process was never started, so it exists but is not ready. */
  #leaveSandbox(record: SandboxRecord): void {
    record.state = 'not-ready';
    record.stopped.open();
    this.#context.store.sandboxes.add(record);
  }

  #dropSandbox(record: SandboxRecord): void {
    this.#freeAddresses(record);
    this.#context.store.sandboxNames.release(record.name, record.id);
  }

  #leaveContainer(record: ContainerRecord): void {
    this.#context.store.containers.add(record);
    this.#containers.announceCreated(record);
  }

  #cutOff(record: SandboxRecord): void {
    if (record.pid !== 0) this.#context.trace.add({ kind: 'sandbox-stopped', ...sandboxFacts(record) });
    record.pid = 0;
    this.#freeAddresses(record);
  }

  #freeAddresses(record: SandboxRecord): void {
    this.#context.network.forget(record.ips);
    record.ips = [];
  }

  #loadSandbox(record: SandboxRecord, state: RestartOptions['state']): void {
    const before = record.state;
    record.stopped = new Latch();
    if (before === 'not-ready' || (before === 'ready' && record.pid === 0)) record.state = 'not-ready';
    else if (state === 'unknown') record.state = 'unknown';
    if (record.state === 'not-ready') record.stopped.open();
  }

  #loadContainer(record: ContainerRecord, state: RestartOptions['state']): void {
    record.busy = undefined;
    record.stopped = new Latch();
    if (containerState(record) === 'CONTAINER_EXITED') record.stopped.open();
    else if (state === 'unknown') record.loaded = 'no';
    else if (containerState(record) === 'CONTAINER_RUNNING' && !hasProcess(record)) this.#loadEnded(record);
  }

  /**
   * It exited while the runtime was down: the exit code is known only if a parent process waited
   * for it.
   */
  #loadEnded(record: ContainerRecord): void {
    const { ended } = record;
    const lost = ended === undefined || ended.cause === 'lost';
    record.finishedAt = lost ? this.#context.nowNs() : ended.at;
    record.exitCode = lost ? unseenCode : ended.exitCode;
    if (lost) record.reason = 'Unknown';
    else if (ended.cause === 'oom') record.reason = 'OOMKilled';
    record.process = undefined;
    record.ended = undefined;
    record.stopped.open();
  }
}
