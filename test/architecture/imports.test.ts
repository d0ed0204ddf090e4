import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { breaches } from './import-rules.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

async function sources(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const path of glob('src/**/*.ts', { cwd: root }))
    found.set(path, await readFile(join(root, path), 'utf8'));
  return found;
}

test('imports follow the ranks of packages and their entry points, and only lib uses time and randomness', async () => {
  const found = await sources();
  assert.ok(found.has('src/lib/index.ts'));
  assert.deepEqual(breaches(found), []);
});
