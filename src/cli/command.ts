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

/** Where a command writes text for its user. Never blocks, never throws. */
export interface TextWriter {
  write(text: string): void;
}

/** Everything a command may use of the world around it. */
export interface CommandContext {
  /** The words after the command's name. */
  readonly argv: readonly string[];
  readonly stdout: TextWriter;
  readonly stderr: TextWriter;
  /** The standard streams themselves, for commands that pass bytes through; asked for only by those. */
  readonly stdio?: (() => Stdio) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when the user or the system asks kubeling to end. */
  readonly signal: AbortSignal;
  /** Calls back each time the system asks for the configuration to be read again; without a listener that ends us. */
  readonly onHangup?: ((listener: () => void) => Disposable) | undefined;
}

export interface Command {
  readonly name: string;
  /** A few words for the list of commands. */
  readonly summary: string;
  /** The whole help text, first line "usage: …", without a newline at its end. */
  readonly usage: string;
  /**
   * Answers the exit code. Rejects with a KubelingError for what the user can act on: the message is shown and the
   * exit code is 1. A long-running command answers 0 when the signal ends it.
   */
  run(context: CommandContext): Promise<number>;
}

/** Exit codes beyond those a command answers itself. */
export const exitCodes = {
  done: 0,
  /** Wrong usage, wrong input, or the work failed. */
  failed: 1,
  /** Ended by the user before the work was done. */
  interrupted: 130,
} as const;

export type OutputFormat = 'text' | 'json';

/** The flag -o of every command that reports something. */
export const outputFlag: Flag<OutputFormat> = {
  kind: choiceFlag<OutputFormat>(['text', 'json']),
  short: 'o',
  help: 'How to print.',
  default: 'text',
};

/** The values of a command's flags; all that is wrong with them is told in one error. */
export function readFlags<F extends FlagTable>(table: F, argv: readonly string[]): FlagValues<F> {
  const { values, positionals, problems } = parseFlags(table, argv);
  const wrong = [
    ...problems.map((problem) => `${problem.flag} ${problem.message}`),
    ...positionals.map((word) => `${JSON.stringify(word)} belongs to no flag`),
  ];
  if (wrong.length > 0) throw new KubelingError('CLI_USAGE', `Cannot use these flags: ${wrong.join('; ')}`);
  return values;
}

/** Tells the user something, with a word before it that says what it is about. */
export type PrintStatus = (about: string, text: string) => void;

export function statusPrinter({ stdout }: Pick<CommandContext, 'stdout'>): PrintStatus {
  return (about, text) => stdout.write(`${about.padEnd(10)}  ${text}\n`);
}
