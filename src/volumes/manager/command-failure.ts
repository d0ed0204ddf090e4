import type { CommandResult } from '../../lib/index.ts';

/** What a program said that did not end well, in one line; undefined for one that did. */
export function failureOf({ end, stderr, stdout }: CommandResult): string | undefined {
  if (end.kind === 'exited' && end.code === 0) return undefined;
  const lines = `${stderr}${stdout}`.split('\n').map((line) => line.trim());
  const said = lines.filter((line) => line !== '').join('; ');
  return said === '' ? `it ended with ${end.kind === 'exited' ? `exit code ${end.code}` : end.by}` : said;
}
