import { type FlagTable, type FlagValues, KubelingError, parseFlags } from '../../lib/index.ts';

export interface CommandWords<F extends FlagTable> {
  readonly values: FlagValues<F>;
  readonly positionals: readonly string[];
  /** What stands behind "--", if it is there. */
  readonly behind: readonly string[] | undefined;
}

/** Everything wrong is told at once. */
export function readWords<F extends FlagTable>(flags: F, argv: readonly string[]): CommandWords<F> {
  const end = argv.indexOf('--');
  const { values, positionals, problems } = parseFlags(flags, end < 0 ? argv : argv.slice(0, end));
  if (problems.length > 0) {
    const wrong = problems.map(({ flag, message }) => `${flag} ${message}`);
    throw new KubelingError('CLI_USAGE', `Cannot use these words: ${wrong.join('; ')}`);
  }
  return { values, positionals, behind: end < 0 ? undefined : argv.slice(end + 1) };
}
