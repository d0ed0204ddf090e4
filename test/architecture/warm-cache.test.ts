import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const script = fileURLToPath(new URL('../../scripts/warm-cache.mjs', import.meta.url));

test('every file can be loaded without doing anything, so that a start finds it compiled', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  assert.match(stdout, /^kubeling \d[^\n]*\n$/);
});
