import {
  type AttachRequest,
  type AttachResponse,
  type ExecRequest,
  type ExecResponse,
  type ExecSyncRequest,
  ExecSyncResponse,
  type PortForwardRequest,
  type PortForwardResponse,
} from '../../src/cri/index.ts';
import { formatDurationMs } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import { Latch } from './latch.ts';
import { execProgramOf } from './launch-plan.ts';
import type { OutputStream } from './logs.ts';
import { memoryLimitOf, type ProcessEnd, SimulatedProcess, type StartProgram } from './process.ts';
import { type ContainerRecord, containerState } from './records.ts';
import { failed, inContext } from './refusals.ts';
import { type Found, required } from './store.ts';

/** The maximum size of a command's output that is stored. */
const maxOutput = 16 << 20;
/** The maximum size of an ExecSync response. */
const maxAnswerBytes = 16 << 20;

interface Execution {
  readonly process: SimulatedProcess;
  readonly done: Latch;
  readonly output: Record<OutputStream, string>;
  end: ProcessEnd | undefined;
}

/** Executes commands in containers, and returns the URLs of streaming requests. */
export class Exec {
  readonly #context: SimulatorContext;
  readonly #streamingUrl: string;

  constructor(context: SimulatorContext, streamingUrl: string) {
    this.#context = context;
    this.#streamingUrl = streamingUrl;
  }

  async execSync(request: ExecSyncRequest, call: CallContext): Promise<ExecSyncResponse> {
    try {
      const { containerId } = request;
      const found = this.#context.store.containers.find(containerId);
      const record = required(found, `failed to find container "${containerId}" in store`);
      checkRunning(record);
      return checkSize(await this.#run(record, request, call));
    } catch (error) {
      throw inContext('failed to exec in container', error);
    }
  }

  exec(request: ExecRequest): ExecResponse {
    const { containerId, tty, stdin, stdout, stderr } = request;
    checkRunning(
      required(this.#container(containerId), `failed to find container "${containerId}" in store`),
    );
    checkStreams({ tty, stdin, stdout, stderr });
    return { url: this.#url('exec') };
  }

  attach(request: AttachRequest): AttachResponse {
    checkRunning(required(this.#container(request.containerId), 'failed to find container in store'));
    checkStreams(request);
    return { url: this.#url('attach') };
  }

  portForward({ podSandboxId }: PortForwardRequest): PortForwardResponse {
    const found = this.#context.store.sandboxes.find(podSandboxId);
    const record = required(found, `failed to find sandbox "${podSandboxId}"`);
    if (record.state !== 'ready') throw failed('sandbox container is not running');
    return { url: this.#url('portforward') };
  }

  #container(id: string): Found<ContainerRecord> {
    return this.#context.store.containers.find(id);
  }

  #url(what: string): string {
    return `${this.#streamingUrl}/${what}/${this.#context.newId().slice(0, 8)}`;
  }

  async #run(
    record: ContainerRecord,
    { cmd, timeout }: ExecSyncRequest,
    call: CallContext,
  ): Promise<ExecSyncResponse> {
    const { newId, events, work, latencyMs } = this.#context;
    const id = newId();
    events.publish('/tasks/exec-added', record.id);
    await work.pause(latencyMs('exec-start'), call.signal);
    const execution = this.#start(record, id, cmd);
    await this.#finish(execution, Number(timeout) * 1_000, call);
    return {
      stdout: Buffer.from(execution.output.stdout),
      stderr: Buffer.from(execution.output.stderr),
      exitCode: execution.end?.exitCode ?? 0,
    };
  }

  #start(record: ContainerRecord, id: string, cmd: readonly string[]): Execution {
    if (record.process?.alive !== true) {
      throw failed(`failed to create exec "${id}": cannot exec in a stopped state: unknown`);
    }
    const line = execProgramOf(record.launch, cmd);
    if (!line.ok) {
      const why = cmd.length === 0 ? line.why : `unable to start container process: ${line.why}`;
      throw failed(`failed to start exec "${id}": OCI runtime exec failed: exec failed: ${why}: unknown`);
    }
    this.#context.events.publish('/tasks/exec-started', record.id);
    const execution = this.#execution(record, id, line.program);
    record.execs.add(execution.process);
    execution.process.run();
    return execution;
  }

  #execution(record: ContainerRecord, id: string, program: StartProgram): Execution {
    const { clock, newPid } = this.#context;
    const output: Record<OutputStream, string> = { stdout: '', stderr: '' };
    const done = new Latch();
    const process = new SimulatedProcess(
      {
        clock,
        files: record.files,
        pid: newPid(),
        rank: 'member',
        env: record.launch.env,
        workingDir: record.launch.workingDir,
        hostname: record.sandbox.config.hostname,
        stdin: 'empty',
        memoryLimitBytes: memoryLimitOf(record.resources.memoryLimitInBytes),
        write(stream, text) {
          if (output[stream].length < maxOutput) output[stream] += text.slice(0, maxOutput);
        },
        onEnd: (end) => {
          record.execs.delete(process);
          execution.end = end;
          this.#announceEnd(record, id, process.pid, end);
          done.open();
        },
      },
      program,
    );
    const execution: Execution = { process, done, output, end: undefined };
    return execution;
  }

  #announceEnd(record: ContainerRecord, id: string, pid: number, end: ProcessEnd): void {
    const { events, nowNs, isUp } = this.#context;
    if (isUp()) events.publishExit({ containerId: record.id, id, pid, exitCode: end.exitCode, at: nowNs() });
  }

  async #finish({ process, done }: Execution, timeoutMs: number, call: CallContext): Promise<void> {
    const { work, rules } = this.#context;
    try {
      if (timeoutMs <= 0) return await done.wait(call.signal);
      if (await done.waitFor(timeoutMs, work, call.signal)) return;
    } catch (error) {
      process.kill();
      throw error;
    }
    process.kill();
    if (rules.execTimeout === 'answers') return;
    throw new GrpcError(
      'DEADLINE_EXCEEDED',
      `timeout ${formatDurationMs(timeoutMs)} exceeded: context deadline exceeded`,
    );
  }
}

function checkRunning(record: ContainerRecord): void {
  const state = containerState(record);
  if (state !== 'CONTAINER_RUNNING') throw failed(`container is in ${state} state`);
}

function checkStreams(expected: Readonly<Record<'tty' | 'stdin' | 'stdout' | 'stderr', boolean>>): void {
  if (!expected.stdin && !expected.stdout && !expected.stderr) {
    throw new GrpcError('INVALID_ARGUMENT', 'one of stdin, stdout, or stderr must be set');
  }
  if (expected.tty && expected.stderr) {
    throw new GrpcError('INVALID_ARGUMENT', 'tty and stderr cannot both be true');
  }
}

function checkSize(response: ExecSyncResponse): ExecSyncResponse {
  if (response.stdout.length + response.stderr.length < maxAnswerBytes - 64) return response;
  const bytes = ExecSyncResponse.encode(response).length;
  if (bytes <= maxAnswerBytes) return response;
  throw new GrpcError(
    'RESOURCE_EXHAUSTED',
    `grpc: trying to send message larger than max (${bytes} vs. ${maxAnswerBytes})`,
  );
}
