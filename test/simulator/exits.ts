import type { ContainerEventResponse } from '../../src/cri/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { SimulatorContext } from './context.ts';
import type { CriEventType } from './events.ts';
import type { ProcessEnd } from './process.ts';
import { type ContainerRecord, containerFacts, type SandboxRecord, sandboxFacts } from './records.ts';
import { containerStatus, sandboxStatus } from './views.ts';

/** The exit code of a sandbox process, which only exits when it is killed. */
const killedCode = 137;

/**
 * Reports the exits of processes. The containerd event is sent immediately, but the runtime's
 * statuses still show the container as running until the runtime has cleaned up: a status query
 * right after the event may be too early.
 */
export class Exits {
  readonly #context: SimulatorContext;

  constructor(context: SimulatorContext) {
    this.#context = context;
  }

  /** Records that the container's process has exited, and sends the containerd event. */
  containerEnded(record: ContainerRecord, end: ProcessEnd): void {
    const { trace, nowNs, isUp, events } = this.#context;
    for (const exec of record.execs) exec.kill();
    record.log?.close();
    record.log = undefined;
    const ended = { ...end, at: nowNs() };
    record.ended = ended;
    trace.add({
      kind: 'container-exited',
      ...containerFacts(record),
      exitCode: end.exitCode,
      cause: end.cause,
    });
    if (!isUp()) return;
    if (end.cause === 'oom') {
      events.publish('/tasks/oom', record.id);
      record.reason = 'OOMKilled';
    }
    const { id } = record;
    events.publishExit({
      containerId: id,
      id,
      pid: record.process?.pid ?? 0,
      exitCode: end.exitCode,
      at: ended.at,
    });
    this.#later(() => this.containerSeen(record));
  }

  /** Records the exit in the runtime's container record. */
  containerSeen(record: ContainerRecord): void {
    const { ended } = record;
    if (ended === undefined) return;
    const { rules, events } = this.#context;
    events.publish('/tasks/delete', record.id);
    if (record.finishedAt === 0n) {
      record.finishedAt = rules.finishedAt(ended.at, record.startedAt);
      record.exitCode = rules.exitCode(ended.exitCode);
      if (ended.cause === 'oom') record.reason = 'OOMKilled';
    }
    record.process = undefined;
    record.ended = undefined;
    record.loaded = 'yes';
    record.stopped.open();
    this.tell('CONTAINER_STOPPED_EVENT', record.id, record.sandbox);
  }

  sandboxEnded(record: SandboxRecord): void {
    const { trace, nowNs, isUp, events } = this.#context;
    const { id, pid } = record;
    if (pid === 0) return;
    record.pid = 0;
    trace.add({ kind: 'sandbox-stopped', ...sandboxFacts(record) });
    if (!isUp()) return;
    events.publishExit({ containerId: id, id, pid, exitCode: killedCode, at: nowNs() });
    this.#later(() => this.sandboxSeen(record));
  }

  sandboxSeen(record: SandboxRecord): void {
    if (record.state === 'not-ready') return;
    this.#context.events.publish('/tasks/delete', record.id);
    record.state = 'not-ready';
    record.stopped.open();
    this.tell('CONTAINER_STOPPED_EVENT', record.id, record);
  }

  /**
   * Sends the CRI event, for containerd versions that support it, with the current statuses of the
   * pod.
   */
  tell(type: CriEventType, containerId: string, sandbox: SandboxRecord): void {
    const { flavour, events } = this.#context;
    if (flavour.criEvents === 'unsupported') return;
    events.publishCri(type, containerId, () => this.#describe(sandbox));
  }

  #describe(
    sandbox: SandboxRecord,
  ): Pick<MessageInit<ContainerEventResponse>, 'podSandboxStatus' | 'containersStatuses'> {
    const { store, images, flavour } = this.#context;
    return {
      podSandboxStatus: store.sandboxes.has(sandbox) ? sandboxStatus(sandbox, flavour) : undefined,
      containersStatuses: store
        .containersOf(sandbox)
        .map((record) => containerStatus(record, images, flavour)),
    };
  }

  #later(run: () => void): void {
    this.#context.work.after(this.#context.latencyMs('exit-seen'), run);
  }
}
