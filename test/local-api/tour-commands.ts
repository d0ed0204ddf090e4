import assert from 'node:assert/strict';
import { accessSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * Splits a line into shell words; supports only the syntax that occurs in the kubectl tour of
 * docs/kubectl-without-a-cluster.md.
 */
function shellWords(line: string): readonly string[] {
  const withHost = line.replaceAll('$(hostname)', hostname().toLowerCase());
  return [...withHost.matchAll(/'([^']*)'|"([^"]*)"|(#.*)|(\S+)/g)].flatMap(
    ([, single, double, remark, plain]) => (remark === undefined ? [single ?? double ?? plain ?? ''] : []),
  );
}

/** The arguments of each kubectl line of the tour in docs/kubectl-without-a-cluster.md. */
export async function tourCommands(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../docs/kubectl-without-a-cluster.md', import.meta.url), 'utf8');
  const [, block = ''] = /\n## The tour\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(text) ?? [];
  const lines = block.split('\n').filter((line) => line.startsWith('kubectl '));
  assert.ok(lines.length > 20, 'the document has a tour');
  return lines.map((line) => shellWords(line).slice(1).join(' '));
}

/** The reason to skip tests that need kubectl, or false when kubectl is on the PATH. */
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
