import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { LeakReport } from './leak-process.ts';

/** Room for what the engine itself keeps: caches, compiled code. A listener or closure kept for each call is more. */
const allowedBytes = 400_000;

test('ten thousand calls, and streams left, aborted, late and refused, leave nothing behind', async () => {
  const script = join(import.meta.dirname, 'leak-process.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script], {
    timeout: 120_000,
  });
  const report = JSON.parse(stdout) as LeakReport;
  for (const [what, bytes] of Object.entries(report.growth)) {
    assert.ok(bytes < allowedBytes, `${what} kept ${bytes} bytes`);
  }
  assert.equal(report.listeners, 0, 'listeners stayed on the shared signal');
  assert.equal(report.openStreams, 0, 'the server still serves streams nobody reads');
  assert.deepEqual(report.resourcesAfter, report.resourcesBefore);
  assert.deepEqual(report.warnings, []);
});
