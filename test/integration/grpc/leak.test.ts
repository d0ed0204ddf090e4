import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { LeakReport } from './leak-process.ts';

/**
 * The tolerance allows for caches and compiled code of the engine; a listener or closure leaked per
 * call exceeds it.
 */
const allowedBytes = 400_000;

test('leaks no memory after ten thousand gRPC calls and streams that were abandoned early, aborted, late or rejected', async () => {
  const script = join(import.meta.dirname, 'leak-process.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script], {
    timeout: 120_000,
  });
  const report = JSON.parse(stdout) as LeakReport;
  for (const [what, bytes] of Object.entries(report.growth)) {
    assert.ok(bytes < allowedBytes, `${what} leaked ${bytes} bytes`);
  }
  assert.equal(report.listeners, 0, 'listeners stayed on the shared signal');
  assert.equal(report.openStreams, 0, 'the server still serves unconsumed streams');
  assert.deepEqual(report.resourcesAfter, report.resourcesBefore);
  assert.deepEqual(report.warnings, []);
});
