import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

const launcher = new URL('../../kubeling', import.meta.url).pathname;

/**
 * A fake runtime that accepts connections and never responds, so that a kubeling command keeps
 * running.
 */
async function silentRuntime(path: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  server.listen(path);
  await once(server, 'listening');
  return server;
}

async function ended(child: ChildProcess): Promise<number | NodeJS.Signals> {
  const [code, signal] = await once(child, 'close');
  return code ?? signal;
}

describe('kubeling process', () => {
  let directory = '';
  let runtime: Server;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'process-'));
    runtime = await silentRuntime(join(directory, 'silent.sock'));
  });
  after(async () => {
    runtime.close();
    await rm(directory, { recursive: true, force: true });
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`kubeling exits on ${signal} with the exit code of an interruption`, async () => {
      const child = spawn(launcher, ['doctor', '--runtime-endpoint', join(directory, 'silent.sock')], {
        stdio: 'ignore',
      });
      const end = ended(child);
      await once(runtime, 'connection');
      child.kill(signal);
      assert.equal(await end, 130);
    });
  }

  it('kubeling ignores a closed output pipe', async () => {
    const child = spawn(launcher, ['doctor', '--data-dir', directory], { stdio: ['ignore', 'pipe', 'pipe'] });
    const errors: string[] = [];
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
    child.stdout.destroy();
    const code = await ended(child);
    assert.ok(code === 0 || code === 1, String(code));
    assert.equal(errors.join(''), '');
  });

  it('kubeling reports wrong usage on standard error with exit code 1', async () => {
    const child = spawn(launcher, ['doctor', '--nonsense'], { stdio: ['ignore', 'pipe', 'pipe'] });
    const errors: string[] = [];
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
    assert.equal(await ended(child), 1);
    assert.match(errors.join(''), /--nonsense is not a known flag/);
  });
});
