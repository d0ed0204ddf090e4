import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { ProcessTable } from '../lib/index.ts';
import { isKubelingUp } from './down.ts';

const processes = new ProcessTable();

/**
 * Runs a shell as the process to check, because other users may not be allowed to execute a Node.js
 * below root's home directory.
 */
async function isUp(args: readonly string[], options: { uid?: number } = {}): Promise<boolean> {
  const child = spawn('/bin/sh', ['-c', 'echo ready; read line', ...args], { stdio: 'pipe', ...options });
  try {
    await once(child.stdout, 'data');
    const owner = await processes.find(child.pid ?? 0);
    assert.ok(owner !== undefined);
    return await isKubelingUp(owner, processes);
  } finally {
    child.kill();
  }
}

test('recognizes only a "kubeling up" of root as the owner of a lock', {
  skip: process.getuid?.() !== 0,
}, async () => {
  assert.equal(await isUp(['/opt/kubeling/src/main.ts', 'up', '--data-dir', '/d']), true);
  assert.equal(await isUp(['src/main.ts', 'up']), true);
  assert.equal(await isUp(['/opt/kubeling/src/main.ts', 'run']), false);
  assert.equal(await isUp(['sleep', 'up']), false);
  assert.equal(await isUp(['/opt/kubeling/src/main.ts', 'up'], { uid: 65_534 }), false);
});
