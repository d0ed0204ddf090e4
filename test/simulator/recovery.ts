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
   * What the runtime finds after the restart: all of its state (`kept`), nothing as on a new disk
   * (`lost`), or records without their state (`unknown`).
   */
  readonly state: 'kept' | 'lost' | 'unknown';
  /** Whether the container processes keep running; they are killed when the machine restarts. */
  readonly processes?: 'kept' | 'killed';
  readonly images?: 'kept' | 'lost';
  /** The downtime in milliseconds; 1 s by default. */
  readonly downMs?: number;
}

/** Applies the effects of killing the runtime, and recovers its records after the restart. */
export class Recovery {
  readonly #context: SimulatorContext;
  readonly #containers: ContainerLifecycle;

  constructor(context: SimulatorContext, containers: ContainerLifecycle) {
    this.#context = context;
    this.#containers = containers;
  }

  /** Applies the effects of the kill. If the state is lost, all processes are killed as well. */
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

  /** Recovers the records after the restart. */
  recover({ state }: RestartOptions): void {
    const { store } = this.#context;
    this.#settleUnfinished();
    for (const record of store.sandboxes.all()) this.#loadSandbox(record, state);
    for (const record of store.containers.all()) this.#loadContainer(record, state);
  }

  /** Resolves incomplete operations: it is random whether their record had reached the disk. */
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

  /** Keeps the record of a starting sandbox: its process was never started, so it is not ready. */
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
   * Records the exit of a container during the downtime; its exit code is known only if a parent
   * process waited for it.
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
