import type { CommandContext } from './command.ts';

/** Tells the user something, with a word before it that says what it is about. */
export type Say = (about: string, text: string) => void;

export function sayTo({ stdout }: Pick<CommandContext, 'stdout'>): Say {
  return (about, text) => stdout.write(`${about.padEnd(10)}  ${text}\n`);
}
