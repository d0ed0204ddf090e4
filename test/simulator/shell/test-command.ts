import type { CommandCall } from './session.ts';
import { ShellRefusal } from './syntax.ts';

const textTests: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  '=': (a, b) => a === b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
};

const numberTests: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '-eq': (a, b) => a === b,
  '-ne': (a, b) => a !== b,
  '-lt': (a, b) => a < b,
  '-le': (a, b) => a <= b,
  '-gt': (a, b) => a > b,
  '-ge': (a, b) => a >= b,
};

/** The exit code of the test command: 0 for true, 1 for false, 2 for an invalid test. */
export function testCommand(call: CommandCall, words: readonly string[]): number {
  if (words[0] === '!') {
    const status = testCommand(call, words.slice(1));
    return status > 1 ? status : 1 - status;
  }
  if (words.length <= 1) return words[0] === undefined || words[0] === '' ? 1 : 0;
  return words.length === 2 ? unary(call, words[0] ?? '', words[1] ?? '') : binary(call, words);
}

function unary({ files }: CommandCall, operator: string, value: string): number {
  switch (operator) {
    case '-n':
      return value === '' ? 1 : 0;
    case '-z':
      return value === '' ? 0 : 1;
    case '-e':
    case '-f':
      return files.read(value).ok ? 0 : 1;
    case '-s': {
      const response = files.read(value);
      return response.ok && response.text !== '' ? 0 : 1;
    }
    default:
      throw new ShellRefusal(`test ${operator} is not supported`);
  }
}

function binary({ streams }: CommandCall, words: readonly string[]): number {
  const [left = '', operator = '', right = '', ...more] = words;
  const text = textTests[operator];
  if (text !== undefined && more.length === 0) return text(left, right) ? 0 : 1;
  const number = numberTests[operator];
  if (number === undefined || more.length > 0)
    throw new ShellRefusal(`test ${words.join(' ')} is not supported`);
  const bad = [left, right].find((value) => !/^-?\d+$/.test(value));
  if (bad === undefined) return number(Number(left), Number(right)) ? 0 : 1;
  streams.write('stderr', `sh: ${bad}: bad number\n`);
  return 2;
}
