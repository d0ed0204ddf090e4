import {
  choiceFlag,
  type Flag,
  type FlagTable,
  type FlagValues,
  KubelingError,
  parseFlags,
} from '../lib/index.ts';

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
