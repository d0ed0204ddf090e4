import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { CriClient } from '../../cri/index.ts';
import { collectLogs, KubelingError, MetricRegistry } from '../../lib/index.ts';
import { runtimeCgroupDriver } from './runtime-cgroup-driver.ts';

const signal = new AbortController().signal;

/** A runtime that returns the given responses in order and then repeats the last one. */
function aRuntime(...responses: readonly (object | Error)[]) {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const metrics = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  let requestCount = 0;
  const runtimeConfig = async () => {
    const response = responses[Math.min(requestCount++, responses.length - 1)];
    if (response instanceof Error) throw response;
    return response;
  };
  const cri = { runtimeConfig } as unknown as CriClient;
  return { deps: { cri, clock, logger, metrics }, clock, metrics, asked: () => requestCount };
}

const away = new KubelingError('CRI_UNAVAILABLE', 'runtime unavailable');

describe('the cgroup driver', () => {
  it('uses the cgroup driver that the runtime reports', async () => {
    const says = (cgroupDriver: string) => aRuntime({ linux: { cgroupDriver } }).deps;
    assert.equal(await runtimeCgroupDriver('cgroupfs', says('SYSTEMD'), signal), 'systemd');
    assert.equal(await runtimeCgroupDriver('systemd', says('CGROUPFS'), signal), 'cgroupfs');
  });

  it('uses the configured cgroup driver if the runtime reports none', async () => {
    assert.equal(
      await runtimeCgroupDriver('systemd', aRuntime({ linux: undefined }).deps, signal),
      'systemd',
    );
  });

  it('uses the configured cgroup driver for a runtime that does not support RuntimeConfig, and counts the unsupported call', async () => {
    const { deps, metrics, asked } = aRuntime(new KubelingError('CRI_UNSUPPORTED', 'unknown method'));
    assert.equal(await runtimeCgroupDriver('systemd', deps, signal), 'systemd');
    assert.equal(asked(), 1);
    assert.match(await metrics.expose(signal), /kubelet_cri_losing_support\{version="1\.37\.0"\} 1/);
  });

  it('retries the query of the cgroup driver every two seconds, up to three times', async () => {
    const { deps, clock, asked } = aRuntime(away, away, { linux: { cgroupDriver: 'SYSTEMD' } });
    const driver = runtimeCgroupDriver('cgroupfs', deps, signal);
    await clock.advance(3_999);
    assert.equal(asked(), 2);
    await clock.advance(1);
    assert.equal(await driver, 'systemd');
  });

  it('fails if the runtime does not respond or reports an unknown cgroup driver', async () => {
    const { deps, clock } = aRuntime(away);
    const driver = assert.rejects(runtimeCgroupDriver('cgroupfs', deps, signal), away);
    await clock.advance(4_000);
    await driver;
    const odd = aRuntime({ linux: { cgroupDriver: 'UNRECOGNIZED' } });
    await assert.rejects(runtimeCgroupDriver('cgroupfs', odd.deps, signal), { code: 'CGROUP_DRIVER' });
  });
});
