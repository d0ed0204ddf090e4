import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const script = fileURLToPath(new URL('../../scripts/warm-cache.mjs', import.meta.url));

test('every source file loads without side effects, so that scripts/warm-cache.mjs can fill the compile cache', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  assert.match(stdout, /^kubeling \d[^\n]*\n$/);
});
