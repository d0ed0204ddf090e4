import type { Timer } from '../../src/lib/index.ts';
import type { OutputStream } from './logs.ts';
import type { Program, ProgramHost, StartProgram } from './process.ts';

/**
 * The behaviour of a container, defined in advance. Events that are not defined do not happen; a
 * container with an empty script runs forever.
 */
export interface ContainerScript {
  /** The reason why the process cannot be started. */
  readonly startError?: string;
  /** When the process exits by itself; its exit code is 0 by default. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** When the OOM killer kills the process. */
  readonly oomAtMs?: number;
  /** What the program does on the stop signal; by default it exits immediately with 143. */
  readonly onTerm?: 'die' | 'ignore' | { readonly afterMs: number; readonly exitCode: number };
  readonly output?: readonly ScriptedOutput[];
  /** Text that the process writes to the termination log when it exits. */
  readonly terminationMessage?: string;
  /**
   * Results of commands executed in the container; other commands are run by the simulated shell.
   */
  readonly exec?: (command: readonly string[]) => ExecAnswer | undefined;
  readonly usage?: ResourceUsage;
}

export interface ScriptedOutput {
  readonly atMs: number;
  /** The interval after which the output is repeated; by default it is written once. */
  readonly everyMs?: number;
  readonly stream?: OutputStream;
  /** The output, including its line end. */
  readonly text: string;
}

export interface ExecAnswer {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
  readonly afterMs?: number;
  /** The command never exits by itself. */
  readonly hangs?: true;
  readonly startError?: string;
}

export interface ResourceUsage {
  /** The used CPU cores, so 0.25 is a quarter of one; 0.001 by default. */
  readonly cpuCores?: number;
  readonly memoryBytes?: number;
  /** The growth of the memory per second, up to the container's limit. */
  readonly memoryBytesPerSecond?: number;
}

const terminationLog = '/dev/termination-log';

/** Creates the program that a script defines. */
export function scriptedProgram(script: ContainerScript): StartProgram {
  return (host) => new ScriptedProgram(script, host);
}

interface Appointment {
  readonly atMs: number;
  readonly run: () => void;
}

class ScriptedProgram implements Program {
  readonly #script: ContainerScript;
  readonly #host: ProgramHost;
  /** Pending events ordered by time; events of the same moment in the order of their definition. */
  readonly #agenda: Appointment[] = [];
  #startMs = 0;
  #timer: Timer | undefined;
  #ending = false;

  constructor(script: ContainerScript, host: ProgramHost) {
    this.#script = script;
    this.#host = host;
  }

  start(): void {
    const { runMs, oomAtMs, exitCode, output } = this.#script;
    this.#startMs = this.#host.clock.monotonicMs();
    for (const line of output ?? []) this.#plan(line.atMs, () => this.#print(line, line.atMs));
    if (oomAtMs !== undefined) {
      this.#plan(oomAtMs, () => this.#host.end({ exitCode: 128 + 9, cause: 'oom' }));
    }
    if (runMs !== undefined) this.#plan(runMs, () => this.#exit(exitCode ?? 0));
  }

  takes(): boolean {
    const { onTerm } = this.#script;
    if (onTerm === 'ignore') return true;
    if (onTerm === undefined || onTerm === 'die') {
      this.#host.end({ exitCode: 128 + 15, cause: 'signal' });
      return true;
    }
    const nowMs = this.#host.clock.monotonicMs() - this.#startMs;
    if (!this.#ending) this.#plan(nowMs + onTerm.afterMs, () => this.#exit(onTerm.exitCode));
    this.#ending = true;
    return true;
  }

  drop(): void {
    this.#agenda.length = 0;
    this.#timer?.cancel();
  }

  #print(line: ScriptedOutput, atMs: number): void {
    this.#host.write(line.stream ?? 'stdout', line.text);
    if (line.everyMs === undefined) return;
    const nextMs = atMs + Math.max(1, line.everyMs);
    this.#plan(nextMs, () => this.#print(line, nextMs));
  }

  #exit(exitCode: number): void {
    const { terminationMessage } = this.#script;
    if (terminationMessage !== undefined) {
      this.#host.files.write(terminationLog, terminationMessage, 'replace');
    }
    this.#host.end({ exitCode, cause: 'exit' });
  }

  #plan(atMs: number, run: () => void): void {
    const later = this.#agenda.findIndex((other) => other.atMs > atMs);
    this.#agenda.splice(later < 0 ? this.#agenda.length : later, 0, { atMs, run });
    if (this.#agenda[0]?.run === run) this.#wait();
  }

  #wait(): void {
    this.#timer?.cancel();
    const [next] = this.#agenda;
    if (next === undefined) return;
    const elapsedMs = this.#host.clock.monotonicMs() - this.#startMs;
    this.#timer = this.#host.clock.timer(next.atMs - elapsedMs, () => this.#keep(next.atMs));
  }

  #keep(atMs: number): void {
    while ((this.#agenda[0]?.atMs ?? Number.POSITIVE_INFINITY) <= atMs) this.#agenda.shift()?.run();
    this.#wait();
  }
}

/** Creates the program of a command with a scripted result. */
export function answeringProgram(response: ExecAnswer): StartProgram {
  return scriptedProgram({
    output: [
      ...(response.stdout === undefined ? [] : [{ atMs: response.afterMs ?? 0, text: response.stdout }]),
      ...(response.stderr === undefined
        ? []
        : [{ atMs: response.afterMs ?? 0, stream: 'stderr' as const, text: response.stderr }]),
    ],
    ...(response.hangs === true ? {} : { runMs: response.afterMs ?? 0, exitCode: response.exitCode ?? 0 }),
  });
}
