import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { collectLogs, realClock, systemRandom } from '../../src/lib/index.ts';
import { type LocalApiOptions, type OpenLocalApi, openLocalApi } from '../../src/local-api/index.ts';

const clock = realClock();
const host = '127.0.0.1';

function open(
  directory: string,
  how: Pick<LocalApiOptions, 'existingStore' | 'listen'>,
): Promise<OpenLocalApi> {
  return openLocalApi(
    {
      ...how,
      directory: join(directory, 'api'),
      adminKubeconfig: join(directory, 'kubeconfig'),
      nodeName: 'n1',
      hostnames: () => [],
      addresses: () => [],
      kubeletAt: () => undefined,
      version: { kubernetes: 'v1.36.4', own: '0.0.0' },
      clock,
      random: systemRandom(),
      logger: collectLogs(clock).logger,
    },
    new AbortController().signal,
  );
}

/**
 * Creates a data directory with files of a previous run, and listens on a port as another process
 * would.
 */
async function scene(): Promise<AsyncDisposable & { readonly directory: string; readonly port: number }> {
  await using made = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'kubeling-start-'));
  made.defer(() => rm(directory, { recursive: true, force: true }));
  const other = made.use(createServer());
  await new Promise<void>((resolve) => other.listen(0, host, resolve));
  await (await open(directory, { listen: { host, port: 0 } }))[Symbol.asyncDispose]();
  const moved = made.move();
  const { port } = other.address() as AddressInfo;
  return { directory, port, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

test('uses a free port when none was configured, and backs up existing files once', async () => {
  await using home = await scene();
  const listen = { host, port: home.port, ifPortInUse: 'another-port' } as const;
  await using api = await open(home.directory, { existingStore: 'set-aside', listen });
  assert.notEqual(new URL(api.url).port, String(home.port));
  const files = await readdir(join(home.directory, 'api', 'store'));
  const aside = files.filter((name) => /set-aside-[^-]*$/.test(name));
  assert.deepEqual(
    aside.map((name) => join(home.directory, 'api', 'store', name)),
    [api.aside],
  );
});

test('fails when the explicitly configured port is in use', async () => {
  await using home = await scene();
  await assert.rejects(open(home.directory, { listen: { host, port: home.port } }), {
    code: 'SERVER_LISTEN',
  });
});
