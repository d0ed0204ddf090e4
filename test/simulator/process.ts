import type { Clock } from '../../src/lib/index.ts';
import type { ContainerFiles } from './container-files.ts';
import type { OutputStream } from './logs.ts';

/** Why a process has exited; `lost` when its machine was restarted. */
export type ProcessEndCause = 'exit' | 'signal' | 'oom' | 'lost';

export interface ProcessEnd {
  readonly exitCode: number;
  readonly cause: ProcessEndCause;
}

/** The interface through which a program uses the simulated machine. */
export interface ProgramHost {
  readonly clock: Clock;
  readonly pid: number;
  readonly hostname: string;
  readonly env: ReadonlyMap<string, string>;
  readonly workingDir: string;
  /**
   * Whether a client may still write to the program's standard input; if `empty`, the program reads
   * EOF.
   */
  readonly stdin: 'open' | 'empty';
  readonly files: ContainerFiles;
  /** The memory limit; a program that uses more is killed. */
  readonly memoryLimitBytes: number;
  write(stream: OutputStream, text: string): void;
  /** Exits the process; no code of the program runs afterwards. */
  end(end: ProcessEnd): void;
  /** Sends a signal to the process with the effect of a signal from within its PID namespace. */
  signalSelf(signal: string): void;
}

/**
 * The behaviour of a process. Its methods are synchronous; time passes through the clock of its
 * host.
 */
export interface Program {
  start(): void;
  /**
   * Handles a signal; returns false for signals without a handler, which then have their default
   * effect.
   */
  takes(signal: string): boolean;
  /** Releases the timers of the program after the process has exited. */
  drop(): void;
}

export type StartProgram = (host: ProgramHost) => Program;

const signalNumbers: Readonly<Record<string, number>> = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  ILL: 4,
  TRAP: 5,
  ABRT: 6,
  BUS: 7,
  FPE: 8,
  KILL: 9,
  USR1: 10,
  SEGV: 11,
  USR2: 12,
  PIPE: 13,
  ALRM: 14,
  TERM: 15,
};

export function signalNumber(name: string): number | undefined {
  return signalNumbers[name];
}

export function signalName(text: string): string | undefined {
  const bare = text.startsWith('SIG') ? text.slice(3) : text;
  if (signalNumbers[bare] !== undefined) return bare;
  return Object.keys(signalNumbers).find((name) => String(signalNumbers[name]) === bare);
}

/** The memory that a process without a limit can use: that of a small machine. */
const machineMemoryBytes = 64 << 20;

export function memoryLimitOf(limit: bigint): number {
  return limit > 0n && limit < machineMemoryBytes ? Number(limit) : machineMemoryBytes;
}

export interface ProcessOptions extends Omit<ProgramHost, 'end' | 'signalSelf'> {
  /** `init` is the first process of a PID namespace: signals it does not handle have no effect. */
  readonly rank: 'init' | 'member';
  readonly onEnd: (end: ProcessEnd) => void;
}

/** One process on the simulated machine; it runs until its program exits or a signal kills it. */
export class SimulatedProcess {
  readonly pid: number;
  readonly startedMs: number;
  readonly #options: ProcessOptions;
  readonly #program: Program;
  #ended: ProcessEnd | undefined;

  constructor(options: ProcessOptions, program: StartProgram) {
    this.pid = options.pid;
    this.#options = options;
    this.startedMs = options.clock.monotonicMs();
    this.#program = program({
      ...options,
      end: (end) => this.#end(end),
      signalSelf: (signal) => this.#signal(signal, 'itself'),
    });
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  run(): void {
    this.#program.start();
  }

  /** Sends a signal from outside of the PID namespace, as the runtime does. */
  signal(name: string): void {
    this.#signal(name, 'outside');
  }

  kill(): void {
    this.#end({ exitCode: 128 + 9, cause: 'signal' });
  }

  /** Ends the process for other reasons: lack of memory or a restart of the machine. */
  endWith(end: ProcessEnd): void {
    this.#end(end);
  }

  #signal(name: string, from: 'outside' | 'itself'): void {
    if (!this.alive) return;
    if (name === 'KILL') {
      // SIGKILL from within the PID namespace has no effect on its first process.
      if (from === 'outside' || this.#options.rank === 'member') this.kill();
      return;
    }
    if (this.#program.takes(name) || this.#options.rank === 'init') return;
    const number = signalNumber(name);
    if (number !== undefined) this.#end({ exitCode: 128 + number, cause: 'signal' });
  }

  #end(end: ProcessEnd): void {
    if (this.#ended !== undefined) return;
    this.#ended = end;
    this.#program.drop();
    this.#options.onEnd(end);
  }
}
