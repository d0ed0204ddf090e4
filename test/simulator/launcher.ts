import type { SimulatorContext } from './context.ts';
import type { Exits } from './exits.ts';
import { programOf } from './launch-plan.ts';
import { ContainerLog } from './logs.ts';
import { memoryLimitOf, SimulatedProcess, type StartProgram } from './process.ts';
import { type ContainerRecord, containerFacts } from './records.ts';
import { failed, inContext } from './refusals.ts';

/** The exit code of a container whose process could not be started. */
const startErrorCode = 128;

/** Starts the processes of containers. */
export class ContainerLauncher {
  readonly #context: SimulatorContext;
  readonly #exits: Exits;

  constructor(context: SimulatorContext, exits: Exits) {
    this.#context = context;
    this.#exits = exits;
  }

  /** Starts the container's process; throws the runtime's error if this fails. */
  launch(record: ContainerRecord): void {
    const { events, trace, nowNs, newPid } = this.#context;
    const line = programOf(record.launch);
    if (!line.ok) {
      throw failed(
        'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: ' +
          `unable to start container process: ${line.why}: unknown`,
      );
    }
    this.#openLog(record);
    const process = this.#newProcess(record, newPid(), line.program);
    record.process = process;
    events.publish('/tasks/create', record.id);
    events.publish('/tasks/start', record.id);
    record.startedAt = nowNs();
    trace.add({ kind: 'container-started', ...containerFacts(record) });
    process.run();
  }

  #newProcess(record: ContainerRecord, pid: number, program: StartProgram): SimulatedProcess {
    const { clock, rules } = this.#context;
    const { config, launch, files, sandbox } = record;
    const init = config.linux?.securityContext?.namespaceOptions?.pid === 'CONTAINER';
    return new SimulatedProcess(
      {
        clock,
        files,
        pid: init ? 1 : pid,
        rank: init ? 'init' : 'member',
        env: launch.env,
        workingDir: launch.workingDir,
        hostname: sandbox.config.hostname,
        stdin: config.stdin ? 'open' : 'empty',
        memoryLimitBytes: memoryLimitOf(record.resources.memoryLimitInBytes),
        write: (stream, text) => record.log?.write(config.tty ? 'stdout' : rules.logStream(stream), text),
        onEnd: (end) => this.#exits.containerEnded(record, end),
      },
      program,
    );
  }

  #openLog(record: ContainerRecord): void {
    if (record.logPath === '') return;
    const { files, nowNs } = this.#context;
    try {
      record.log = new ContainerLog({ path: record.logPath, files, now: nowNs });
    } catch (error) {
      throw inContext('failed to create containerd task: failed to create container loggers', error);
    }
  }

  /** Records the exit of a container that could not be started. */
  failed(record: ContainerRecord, error: unknown): void {
    const { nowNs, rules, trace } = this.#context;
    const message = error instanceof Error ? error.message : String(error);
    record.finishedAt = rules.finishedAt(nowNs(), record.createdAt);
    record.exitCode = rules.exitCode(startErrorCode);
    record.reason = 'StartError';
    record.message = message;
    record.stopped.open();
    trace.add({ kind: 'container-start-failed', ...containerFacts(record), message });
  }
}
