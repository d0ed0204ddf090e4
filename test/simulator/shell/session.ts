import type { ContainerFiles } from '../container-files.ts';
import type { OutputStream } from '../logs.ts';
import type { Variables } from './expand.ts';

/** What a command waits for; the shell continues when it has happened. */
export type Step =
  | { readonly kind: 'sleep'; readonly ms: number }
  /**
   * The shell does not wait; it yields so that a signal that the process sent to itself takes
   * effect.
   */
  | { readonly kind: 'turn' }
  /** Waits until all background jobs are done, or a signal with a trap arrives. */
  | { readonly kind: 'jobs' }
  | { readonly kind: 'forever' };

export type Running = Generator<Step, number, void>;

/** The standard streams of a command. */
export interface Streams {
  /** Text from a redirection; undefined to read the process's own standard input. */
  readonly stdin: string | undefined;
  write(stream: OutputStream, text: string): void;
}

/** Thrown to exit the shell from any depth. */
export class ExitRequest {
  readonly code: number;

  constructor(code: number) {
    this.code = code & 0xff;
  }
}

/** Thrown to leave the innermost loop, or its current iteration. */
export class LoopRequest {
  readonly kind: 'break' | 'continue';

  constructor(kind: 'break' | 'continue') {
    this.kind = kind;
  }
}

/** Thrown when a variable needs more memory than the process may use. */
export class OutOfMemory {}

export interface ScopeOptions {
  readonly name: string;
  readonly positional: readonly string[];
  readonly pid: number;
  readonly memoryLimitBytes: number;
}

/** The variables and settings of one shell; a subshell gets a copy. */
export class Scope implements Variables {
  readonly #values: Map<string, string>;
  readonly #exported: Set<string>;
  readonly name: string;
  readonly positional: readonly string[];
  readonly pid: number;
  readonly memoryLimitBytes: number;
  status = 0;
  lastJob: number | undefined;
  exitOnError = false;

  constructor(env: ReadonlyMap<string, string>, options: ScopeOptions) {
    this.#values = new Map(env);
    this.#exported = new Set(env.keys());
    this.name = options.name;
    this.positional = options.positional;
    this.pid = options.pid;
    this.memoryLimitBytes = options.memoryLimitBytes;
  }

  get(name: string): string | undefined {
    if (name === '?') return String(this.status);
    if (name === '$') return String(this.pid);
    if (name === '!') return this.lastJob === undefined ? '' : String(this.lastJob);
    if (name === '#') return String(this.positional.length);
    if (name === '0') return this.name;
    return /^\d$/.test(name) ? this.positional[Number(name) - 1] : this.#values.get(name);
  }

  set(name: string, value: string): void {
    if (value.length > this.memoryLimitBytes) throw new OutOfMemory();
    this.#values.set(name, value);
  }

  unset(name: string): void {
    this.#values.delete(name);
    this.#exported.delete(name);
  }

  export(name: string): void {
    this.#exported.add(name);
  }

  /** The environment variables of a command that is started now. */
  environment(): ReadonlyMap<string, string> {
    const env = new Map<string, string>();
    for (const [name, value] of this.#values) if (this.#exported.has(name)) env.set(name, value);
    return env;
  }

  copy(): Scope {
    const copy = new Scope(this.#values, this);
    copy.#exported.clear();
    for (const name of this.#exported) copy.#exported.add(name);
    copy.status = this.status;
    copy.exitOnError = this.exitOnError;
    return copy;
  }
}

/**
 * The arguments, the environment and the parts of the shell and the machine that a shell command
 * can access.
 */
export interface CommandCall {
  /** The arguments, without the name of the command. */
  readonly args: readonly string[];
  readonly scope: Scope;
  readonly streams: Streams;
  readonly env: ReadonlyMap<string, string>;
  readonly files: ContainerFiles;
  readonly host: {
    readonly hostname: string;
    readonly workingDir: string;
    readonly stdin: 'open' | 'empty';
    nowMs(): number;
  };
  readonly shell: ShellControl;
}

export interface ShellControl {
  trap(signal: string, action: 'default' | 'ignore' | { readonly script: string }): void;
  /**
   * Sends a signal to the shell itself, or to one of its jobs; returns whether the process exists.
   */
  kill(pid: number, signal: string): boolean;
  /** Removes the traps of the shell, because `exec` replaces it by a command. */
  replaceItself(): void;
  /** Runs a script in a new shell. */
  runScript(script: string, scope: Scope, streams: Streams): Running;
  runCommand(words: readonly string[], scope: Scope, streams: Streams): Running;
  /** The signal that interrupted the last wait, if any. */
  takeInterruption(): string | undefined;
}

/** A command of the simulated shell. */
export type Command = (call: CommandCall) => number | Running;
