import type { Clock, Random } from '../lib/index.ts';
import {
  choiceFlag,
  type Flag,
  type FlagTable,
  type FlagValues,
  KubelingError,
  parseFlags,
} from '../lib/index.ts';
import type { Stdio } from './streams/stdio.ts';

/** Writes the output of a command. Never blocks, never throws. */
export interface TextWriter {
  write(text: string): void;
}

/** The environment of a command. */
export interface CommandContext {
  /** The arguments after the command's name. */
  readonly argv: readonly string[];
  readonly stdout: TextWriter;
  readonly stderr: TextWriter;
  /** The standard streams of the process, for commands that pass bytes through. */
  readonly stdio?: (() => Stdio) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when the user or the system requests that kubeling exits. */
  readonly signal: AbortSignal;
  /** Calls the listener on each SIGHUP; without a listener SIGHUP terminates the process. */
  readonly onHangup?: ((listener: () => void) => Disposable) | undefined;
}

export interface Command {
  readonly name: string;
  /** A short description for the list of commands. */
  readonly summary: string;
  /** The complete help text; its first line is "usage: …", without a newline at its end. */
  readonly usage: string;
  /**
   * Returns the exit code. Rejects with a KubelingError for failures the user can act on: the
   * message is printed and the exit code is 1. A long-running command returns 0 when the signal
   * stops it.
   */
  run(context: CommandContext): Promise<number>;
}

/** Exit codes common to all commands. */
export const exitCodes = {
  done: 0,
  /** The command failed, or its usage or input was invalid. */
  failed: 1,
  /** The user interrupted the command before it was done. */
  interrupted: 130,
} as const;

export type OutputFormat = 'text' | 'json';

/** The flag `-o` of every command that prints a report. */
export const outputFlag: Flag<OutputFormat> = {
  kind: choiceFlag<OutputFormat>(['text', 'json']),
  short: 'o',
  help: 'Output format.',
  default: 'text',
};

/** Parses the flags of a command and reports all problems in one error. */
export function readFlags<F extends FlagTable>(table: F, argv: readonly string[]): FlagValues<F> {
  const { values, positionals, problems } = parseFlags(table, argv);
  const wrong = [
    ...problems.map((problem) => `${problem.flag} ${problem.message}`),
    ...positionals.map((word) => `${JSON.stringify(word)} is not a flag`),
  ];
  if (wrong.length > 0) throw new KubelingError('CLI_USAGE', `Cannot use these flags: ${wrong.join('; ')}`);
  return values;
}

/** Prints a line with a label in front. */
export type PrintStatus = (about: string, text: string) => void;

export function statusPrinter({ stdout }: Pick<CommandContext, 'stdout'>): PrintStatus {
  return (about, text) => stdout.write(`${about.padEnd(10)}  ${text}\n`);
}
