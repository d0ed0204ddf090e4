import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostFiles, loadConfig } from '../../config/index.ts';
import { exclusiveResourceSettings } from './exclusive-resource-settings.ts';

const gib = 2 ** 30;

async function settingsOf(...flags: readonly string[]) {
  const files = hostFiles();
  const loaded = await loadConfig(flags, { files, cwd: '/' }, new AbortController().signal);
  return exclusiveResourceSettings(loaded, 8 * gib);
}

describe('exclusive resource settings', () => {
  it('returns undefined for the default configuration', async () => {
    assert.equal(await settingsOf(), undefined);
  });

  it('rounds reserved CPUs up to whole CPUs', async () => {
    const settings = await settingsOf(
      '--cpu-manager-policy=static',
      '--system-reserved=cpu=500m',
      '--kube-reserved=cpu=600m',
      '--cpu-manager-policy-options=full-pcpus-only=true',
    );
    assert.deepEqual(settings?.cpu, {
      reservedCpus: '',
      reservedCount: 2,
      options: { 'full-pcpus-only': 'true' },
      reconcileMs: 10_000,
      quota: 'lifted',
    });
  });

  it('prefers a list of reserved CPUs over an amount', async () => {
    const settings = await settingsOf(
      '--cpu-manager-policy=static',
      '--kube-reserved=cpu=600m',
      '--reserved-cpus=0-1,4',
    );
    assert.deepEqual([settings?.cpu?.reservedCount, settings?.cpu?.reservedCpus], [3, '0-1,4']);
  });

  it('reserves the memory that pods may not use, including the eviction threshold', async () => {
    const settings = await settingsOf(
      '--memory-manager-policy=Static',
      '--kube-reserved=memory=1Gi',
      '--reserved-memory=0:memory=1124Mi',
    );
    assert.deepEqual(settings?.memory?.required, new Map([['memory', BigInt(1_124 * 2 ** 20)]]));
    assert.deepEqual(settings?.memory?.reserved, [
      { numaNode: 0, limits: new Map([['memory', BigInt(1_124 * 2 ** 20)]]) },
    ]);
  });

  it('includes the topology policy with its scope', async () => {
    const settings = await settingsOf('--topology-manager-policy=restricted', '--topology-manager-scope=pod');
    assert.deepEqual(settings?.topology, { policy: 'restricted', scope: 'pod', options: {} });
  });
});
