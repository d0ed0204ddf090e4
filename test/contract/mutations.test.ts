import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { simulatorMutations } from '../simulator/index.ts';

const suite = fileURLToPath(new URL('./mutated-suite.ts', import.meta.url));

/** Runs the whole suite on a simulator that violates one rule; returns its exit code and output. */
function runMutated(mutation: string): Promise<{ readonly code: number; readonly output: string }> {
  // Without the variable of the test runner, the child process reports its own results.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, [suite, mutation], { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr }),
    );
  });
}

for (const mutation of simulatorMutations) {
  test(`the contract suite fails on a simulator with the mutation ${mutation}`, async () => {
    const { code, output } = await runMutated(mutation);
    assert.equal(code, 1, output.slice(-2_000));
    assert.match(output, /fail [1-9]/, 'tests ran and failed; it did not merely break down');
    assert.match(output, /pass [1-9]\d/, 'and most of the contract still held');
  });
}
