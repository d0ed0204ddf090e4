import { type ChildProcess, spawn } from 'node:child_process';
import { onAbort } from './abort.ts';
import type { Clock, Timer } from './clock.ts';
import { printableValue } from './command-arguments.ts';
import { KubelingError } from './errors.ts';

/** A program to run: never through a shell, so no argument needs quoting. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** The complete environment of the program; by default that of kubeling. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The text written to standard input; empty by default. */
  readonly input?: string | Uint8Array;
  /** Called with each part of stdout when it is read. */
  readonly onOutput?: (text: string) => void;
  /**
   * The maximum number of bytes kept of stdout and of stderr, 1 MiB by default; further output is
   * dropped.
   */
  readonly maxOutputBytes?: number;
  /**
   * Called when the process survives SIGKILL, for example because a dead disk blocks it; the
   * promise settles when it has exited.
   */
  readonly onAbandoned?: (exited: Promise<void>) => void;
}

export type CommandEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly by: NodeJS.Signals };

export interface CommandResult {
  readonly end: CommandEnd;
  readonly stdout: string;
  readonly stderr: string;
  /** The number of bytes dropped beyond the limit, from stdout and stderr together. */
  readonly droppedBytes: number;
}

const defaultMaxOutputBytes = 1024 * 1024;
/**
 * The time between SIGTERM and SIGKILL, and between SIGKILL and abandoning a process that is
 * blocked in the kernel.
 */
const killGraceMs = 1000;
/**
 * The time to wait for the pipes after the command has exited, because a grandchild may keep them
 * open.
 */
const pipeGraceMs = 500;

/**
 * Runs a command and returns how it ended, whatever the exit code. Rejects when it cannot be
 * started (`COMMAND_NOT_FOUND`, `COMMAND_FAILED`), exceeds its deadline (`DEADLINE_EXCEEDED`) or is
 * aborted; in the last two cases its process group is killed first.
 */
export function runCommand(command: Command, signal: AbortSignal): Promise<CommandResult> {
  if (signal.aborted) return Promise.reject(signal.reason);
  if ([command.file, ...command.args].some((text) => text.includes('\0')))
    return Promise.reject(argumentWithNul(command));
  return new Promise((resolve, reject) => {
    const run = new CommandRun(command, { resolve, reject });
    run.watch(signal);
  });
}

/**
 * The error for an argument with NUL. The kernel ends a string at its first NUL, and Node.js
 * rejects such an argument with an unspecific error.
 */
function argumentWithNul({ file, args }: Command): KubelingError {
  const found = [file, ...args].find((text) => text.includes('\0')) ?? '';
  return new KubelingError(
    'COMMAND_FAILED',
    `Cannot run ${printableValue(file)} as an argument must not contain NUL: current value is ${printableValue(found)}`,
  );
}

/**
 * Runs a command like `runCommand`, but fails with `COMMAND_FAILED` unless the exit code is 0 and
 * the output is complete.
 */
export async function runChecked(command: Command, signal: AbortSignal): Promise<CommandResult> {
  const result = await runCommand(command, signal);
  const ended = result.end.kind === 'exited' ? `exit code ${result.end.code}` : `signal ${result.end.by}`;
  if (ended !== 'exit code 0') {
    const output = lastLines(result.stderr, 5) || lastLines(result.stdout, 5) || 'it printed nothing';
    throw new KubelingError('COMMAND_FAILED', `Cannot ${describe(command)}: ${ended}: ${output}`, {
      details: { file: command.file, args: command.args, end: result.end },
    });
  }
  if (result.droppedBytes > 0) {
    const limit = command.maxOutputBytes ?? defaultMaxOutputBytes;
    throw new KubelingError(
      'COMMAND_FAILED',
      `Cannot use the output of ${command.file} as it must be at most ${limit} bytes: it was ${result.droppedBytes} bytes longer`,
    );
  }
  return result;
}

function describe(command: Command): string {
  return `run ${[command.file, ...command.args].join(' ')}`;
}

/** The last non-empty lines of the output, joined to one line. */
function lastLines(text: string, count: number): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(-count)
    .join(' | ');
}

interface Outcome {
  readonly resolve: (result: CommandResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One run of one command: it settles its promise exactly once, and then leaves no timer, listener
 * or process.
 */
class CommandRun {
  readonly #command: Command;
  readonly #outcome: Outcome;
  readonly #child: ChildProcess;
  readonly #stdout: BoundedText;
  readonly #stderr: BoundedText;
  readonly #timers: Timer[] = [];
  #link: Disposable | undefined;
  /** The error for which the command is killed; undefined while it may run. */
  #killReason: { readonly reason: unknown } | undefined;
  #end: CommandEnd | undefined;
  #settled = false;

  constructor(command: Command, outcome: Outcome) {
    this.#command = command;
    this.#outcome = outcome;
    const limit = command.maxOutputBytes ?? defaultMaxOutputBytes;
    this.#stdout = new BoundedText(limit);
    this.#stderr = new BoundedText(limit);
    // The command runs in its own process group, so that a kill includes its children.
    this.#child = spawn(command.file, command.args, {
      stdio: [command.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true,
      ...(command.env === undefined ? {} : { env: { ...command.env } }),
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
    });
  }

  watch(signal: AbortSignal): void {
    const child = this.#child;
    child.once('error', (error) => this.#fail(this.#startError(error)));
    child.once('exit', (code, by) => this.#exited(code, by));
    child.once('close', () => this.#finish());
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#stdout.add(chunk);
      this.#command.onOutput?.(chunk.toString('utf8'));
    });
    child.stderr?.on('data', (chunk: Buffer) => this.#stderr.add(chunk));
    this.#feed();
    const { clock, deadlineMs } = this.#command;
    this.#timers.push(clock.timer(deadlineMs, () => this.#kill(this.#late())));
    this.#link = onAbort(signal, (reason) => this.#kill(reason));
  }

  #feed(): void {
    const stdin = this.#child.stdin;
    if (stdin === null) return;
    // A command may exit without reading all of its input: its exit code decides, not the write
    // error.
    stdin.on('error', () => {});
    stdin.end(this.#command.input);
  }

  #late(): KubelingError {
    const { deadlineMs } = this.#command;
    return new KubelingError(
      'DEADLINE_EXCEEDED',
      `Cannot ${describe(this.#command)} within ${deadlineMs} ms`,
    );
  }

  #startError(error: NodeJS.ErrnoException): KubelingError {
    const { file } = this.#command;
    if (error.code === 'ENOENT') {
      return new KubelingError('COMMAND_NOT_FOUND', `Cannot run ${file} as there is no such program`, {
        cause: error,
      });
    }
    return new KubelingError('COMMAND_FAILED', `Cannot run ${file}: ${error.message}`, { cause: error });
  }

  #exited(code: number | null, by: NodeJS.Signals | null): void {
    this.#end = by === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'killed', by };
    this.#after(pipeGraceMs, () => this.#finish());
  }

  #kill(reason: unknown): void {
    if (this.#settled || this.#killReason !== undefined) return;
    this.#killReason = { reason };
    this.#signalGroup('SIGTERM');
    this.#after(killGraceMs, () => this.#signalGroup('SIGKILL'));
    this.#after(2 * killGraceMs, () => this.#finish());
  }

  #signalGroup(name: NodeJS.Signals): void {
    const pid = this.#child.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The signal could not be sent because the process group has already exited.
    }
  }

  #finish(): void {
    if (this.#settled) return;
    if (this.#killReason !== undefined) {
      this.#fail(this.#killReason.reason);
      return;
    }
    this.#release();
    this.#outcome.resolve({
      end: this.#end ?? { kind: 'killed', by: 'SIGKILL' },
      stdout: this.#stdout.text(),
      stderr: this.#stderr.text(),
      droppedBytes: this.#stdout.dropped + this.#stderr.dropped,
    });
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    // Kills the remaining processes of the group, which must not outlive the result.
    if (this.#killReason !== undefined) this.#signalGroup('SIGKILL');
    this.#release();
    if (this.#killReason !== undefined && this.#end === undefined) this.#abandon();
    this.#outcome.reject(error);
  }

  #abandon(): void {
    const child = this.#child;
    this.#command.onAbandoned?.(new Promise((resolve) => child.once('exit', () => resolve())));
  }

  #after(ms: number, run: () => void): void {
    if (!this.#settled) this.#timers.push(this.#command.clock.timer(ms, run));
  }

  #release(): void {
    this.#settled = true;
    for (const timer of this.#timers) timer.cancel();
    this.#link?.[Symbol.dispose]();
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#child.stdin?.destroy();
    this.#child.unref();
  }
}

/** Collects the first bytes of an output up to a limit and counts the dropped ones. */
class BoundedText {
  readonly #limit: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  dropped = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    const retained = chunk.subarray(0, Math.max(0, this.#limit - this.#size));
    if (retained.length > 0) this.#chunks.push(retained);
    this.#size += retained.length;
    this.dropped += chunk.length - retained.length;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}
