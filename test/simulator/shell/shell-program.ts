import type { Timer } from '../../../src/lib/index.ts';
import type { Program, ProgramHost } from '../process.ts';
import { commandNamed, programNamed } from './commands.ts';
import { Interpreter } from './interpreter.ts';
import { parseShell } from './parse.ts';
import { ExitRequest, OutOfMemory, type Running, Scope, type ShellControl, type Streams } from './session.ts';
import { type Node, ShellRefusal, ShellSyntaxError } from './syntax.ts';

/** The exit code of a program that uses an unsupported feature. */
const refusedCode = 125;
/** The exit code of a script with a syntax error. */
const syntaxErrorCode = 2;

export type ShellStart =
  | {
      readonly kind: 'script';
      readonly script: Node;
      readonly name: string;
      readonly args: readonly string[];
    }
  | { readonly kind: 'program'; readonly words: readonly string[] };

/**
 * A process of the simulated image: a shell script, or one program without a shell. As in a real
 * shell, signals stay pending while the shell waits for a program in the foreground, and interrupt
 * the `wait` command.
 */
export class ShellProgram implements Program, ShellControl {
  readonly #host: ProgramHost;
  readonly #start: ShellStart;
  readonly #interpreter: Interpreter;
  readonly #traps = new Map<string, Node | 'ignore'>();
  readonly #jobs = new Map<number, Task>();
  readonly #pending: string[] = [];
  readonly #streams: Streams;
  readonly #scope: Scope;
  #main: Task | undefined;
  #interruption: string | undefined;
  #nextJob: number;

  constructor(start: ShellStart, host: ProgramHost) {
    this.#start = start;
    this.#host = host;
    this.#nextJob = host.pid + 1;
    this.#streams = { stdin: undefined, write: (stream, text) => host.write(stream, text) };
    this.#scope = new Scope(host.env, {
      name: start.kind === 'script' ? start.name : (start.words[0] ?? ''),
      positional: start.kind === 'script' ? start.args : [],
      pid: host.pid,
      memoryLimitBytes: host.memoryLimitBytes,
    });
    this.#interpreter = new Interpreter({
      files: host.files,
      host: {
        hostname: host.hostname,
        workingDir: host.workingDir,
        stdin: host.stdin,
        nowMs: () => host.clock.now(),
      },
      shell: this,
      afterCommand: (scope, streams) => this.#runTraps(scope, streams),
      startJob: (run) => this.#startJob(run),
    });
  }

  start(): void {
    const main = this.#newTask(this.#run(), (code) => this.#host.end({ exitCode: code, cause: 'exit' }));
    this.#main = main;
    main.goOn();
  }

  takes(signal: string): boolean {
    const trap = this.#traps.get(signal);
    if (trap === undefined) return false;
    if (trap === 'ignore') return true;
    if (!this.#pending.includes(signal)) this.#pending.push(signal);
    if (this.#main?.waitsFor === 'jobs') {
      this.#interruption = signal;
      this.#main.goOn();
    }
    return true;
  }

  drop(): void {
    this.#main?.drop();
    for (const job of this.#jobs.values()) job.drop();
    this.#jobs.clear();
  }

  trap(signal: string, action: 'default' | 'ignore' | { readonly script: string }): void {
    if (action === 'default') this.#traps.delete(signal);
    else this.#traps.set(signal, action === 'ignore' ? 'ignore' : parseShell(action.script));
  }

  kill(pid: number, signal: string): boolean {
    if (pid === this.#host.pid) {
      this.#host.signalSelf(signal);
      return true;
    }
    const job = this.#jobs.get(pid);
    job?.drop();
    if (this.#jobs.delete(pid)) this.#jobsChanged();
    return job !== undefined;
  }

  replaceItself(): void {
    for (const [signal, trap] of this.#traps) if (trap !== 'ignore') this.#traps.delete(signal);
  }

  *runScript(script: string, scope: Scope, streams: Streams): Running {
    try {
      return yield* this.#interpreter.run(parseShell(script), scope, streams);
    } catch (error) {
      if (error instanceof ExitRequest) return error.code;
      if (!(error instanceof ShellSyntaxError)) throw error;
      streams.write('stderr', `${scope.name}: ${error.message}\n`);
      return 2;
    }
  }

  runCommand(words: readonly string[], scope: Scope, streams: Streams): Running {
    return this.#interpreter.command(words, scope, streams, commandNamed);
  }

  takeInterruption(): string | undefined {
    const interruption = this.#interruption;
    this.#interruption = undefined;
    return interruption;
  }

  *#run(): Running {
    const start = this.#start;
    if (start.kind === 'program') {
      return yield* this.#interpreter.command(start.words, this.#scope, this.#streams, programNamed);
    }
    let code: number;
    try {
      code = yield* this.#interpreter.run(start.script, this.#scope, this.#streams);
    } catch (error) {
      if (!(error instanceof ExitRequest)) throw error;
      code = error.code;
    }
    return yield* this.#farewell(code);
  }

  /** Runs the EXIT trap, which may change the exit code. */
  *#farewell(code: number): Running {
    const trap = this.#traps.get('EXIT');
    if (trap === undefined || trap === 'ignore') return code;
    this.#traps.delete('EXIT');
    this.#scope.status = code;
    yield* this.#interpreter.run(trap, this.#scope, this.#streams);
    return code;
  }

  *#runTraps(scope: Scope, streams: Streams): Running {
    if (this.#pending.length === 0 || scope !== this.#scope) return 0;
    const status = scope.status;
    for (let signal = this.#pending.shift(); signal !== undefined; signal = this.#pending.shift()) {
      const trap = this.#traps.get(signal);
      if (trap !== undefined && trap !== 'ignore') yield* this.#interpreter.run(trap, scope, streams);
    }
    scope.status = status;
    return 0;
  }

  #startJob(run: Running): number {
    const pid = this.#nextJob++;
    const job = this.#newTask(run, () => {
      this.#jobs.delete(pid);
      this.#jobsChanged();
    });
    this.#jobs.set(pid, job);
    job.goOn();
    return pid;
  }

  #jobsChanged(): void {
    if (this.#jobs.size === 0 && this.#main?.waitsFor === 'jobs') this.#main.goOn();
  }

  #newTask(run: Running, onDone: (code: number) => void): Task {
    return new Task({
      run,
      host: this.#host,
      hasJobs: () => this.#jobs.size > 0,
      onDone,
      onFailure: (error) => this.#host.write('stderr', `${this.#scope.name}: ${error.message}\n`),
    });
  }
}

interface TaskOptions {
  readonly run: Running;
  readonly host: ProgramHost;
  readonly hasJobs: () => boolean;
  readonly onDone: (code: number) => void;
  readonly onFailure: (error: ShellRefusal | ShellSyntaxError) => void;
}

/**
 * One task of a shell: the script itself or a background job. It runs until it has to wait, and
 * continues afterwards.
 */
class Task {
  readonly #options: TaskOptions;
  #timer: Timer | undefined;
  #waitsFor: 'time' | 'jobs' | 'nothing' | undefined;
  #dropped = false;

  constructor(options: TaskOptions) {
    this.#options = options;
  }

  get waitsFor(): 'time' | 'jobs' | 'nothing' | undefined {
    return this.#waitsFor;
  }

  goOn(): void {
    this.#waitsFor = undefined;
    while (!this.#dropped && this.#waitsFor === undefined) this.#step();
  }

  drop(): void {
    this.#dropped = true;
    this.#timer?.cancel();
  }

  #step(): void {
    const next = this.#next();
    // The process may have killed itself in this step.
    if (this.#dropped) return;
    if (next.done === true) {
      this.#dropped = true;
      this.#options.onDone(next.value);
      return;
    }
    const step = next.value;
    if (step.kind === 'turn') return;
    if (step.kind === 'jobs') {
      if (this.#options.hasJobs()) this.#waitsFor = 'jobs';
    } else if (step.kind === 'forever') this.#waitsFor = 'nothing';
    else {
      this.#waitsFor = 'time';
      this.#timer = this.#options.host.clock.timer(step.ms, () => this.goOn());
    }
  }

  #next(): ReturnType<Running['next']> {
    try {
      return this.#options.run.next();
    } catch (error) {
      if (error instanceof ExitRequest) return { done: true, value: error.code };
      if (error instanceof OutOfMemory) {
        this.#options.host.end({ exitCode: 128 + 9, cause: 'oom' });
        return { done: true, value: 128 + 9 };
      }
      if (!(error instanceof ShellRefusal || error instanceof ShellSyntaxError)) throw error;
      this.#options.onFailure(error);
      return { done: true, value: error instanceof ShellRefusal ? refusedCode : syntaxErrorCode };
    }
  }
}
