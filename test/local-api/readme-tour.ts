import assert from 'node:assert/strict';
import { accessSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { delimiter, join } from 'node:path';

/** The words of a line as a shell would take them apart, as far as the tour needs it. */
function shellWords(line: string): readonly string[] {
  const withHost = line.replaceAll('$(hostname)', hostname().toLowerCase());
  return [...withHost.matchAll(/'([^']*)'|"([^"]*)"|(#.*)|(\S+)/g)].flatMap(
    ([, single, double, remark, plain]) => (remark === undefined ? [single ?? double ?? plain ?? ''] : []),
  );
}

/** What the tour of the README tells users to type behind `kubectl`, line by line. */
export async function readmeTour(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const [, block = ''] = /\n## The tour\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(text) ?? [];
  const lines = block.split('\n').filter((line) => line.startsWith('kubectl '));
  assert.ok(lines.length > 20, 'the README has a tour');
  return lines.map((line) => shellWords(line).slice(1).join(' '));
}

/** Why what needs kubectl is left out here; false when it is there. */
export function withoutKubectl(): string | false {
  const isThere = (process.env['PATH'] ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, 'kubectl'));
      return true;
    } catch {
      return false;
    }
  });
  return isThere ? false : 'kubectl is not on the PATH';
}
