import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { realClock, systemRandom } from '../../src/lib/index.ts';
import { hostPluginHost } from '../../src/plugins/index.ts';
import { eventually } from '../kubeling-node.ts';

test('detects a plugin in its own subdirectory as soon as its socket exists', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'klg-plg-'));
  const server = createServer();
  t.after(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const host = hostPluginHost(realClock(), systemRandom());
  let hints = 0;
  using _watch = host.watch(folder, () => {
    hints++;
  });
  mkdirSync(join(folder, 'own'));
  await eventually('the directory to be watched', async () => (hints > 0 ? true : undefined));
  assert.deepEqual(await host.sockets(folder), []);
  const before = hints;
  await new Promise<void>((listening) => server.listen(join(folder, 'own/plugin.sock'), listening));
  await eventually('the socket to be detected', async () => (hints > before ? true : undefined));
  const [found, ...more] = await host.sockets(folder);
  assert.deepEqual([found?.path, more], [join(folder, 'own/plugin.sock'), []]);
});
