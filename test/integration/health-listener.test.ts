import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { HealthListener } from '../../src/cli/kubelet/health-listener.ts';
import { collectLogs } from '../../src/lib/index.ts';
import { healthRoutes } from '../../src/server/index.ts';
import { until } from '../fakes/until.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

const routes = healthRoutes([{ name: 'ping', problem: () => undefined }]);

async function taken() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

test('retries to listen on an address in use every five seconds until it is free', async () => {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const { server, port } = await taken();
  await using health = await HealthListener.open({
    ...{ clock, logger, routes, port, host: '127.0.0.1', names: [] },
    whenPortInUse: 'retry',
  });
  assert.equal(health.port, undefined);
  await clock.advance(5_000);
  assert.equal(health.port, undefined);
  await new Promise((resolve) => server.close(resolve));
  await until('health is served', () => {
    void clock.advance(5_000);
    return health.port === port;
  });
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text(), 'ok');
  assert.equal((await fetch(`http://127.0.0.1:${port}/debug/pprof/`)).status, 404);
});

test('stops retrying to listen when closed', async () => {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const { server, port } = await taken();
  try {
    const health = await HealthListener.open({
      ...{ clock, logger, routes, port, host: '127.0.0.1', names: [] },
      whenPortInUse: 'retry',
    });
    await health.close();
    assert.equal(health.port, undefined);
  } finally {
    server.close();
  }
});
