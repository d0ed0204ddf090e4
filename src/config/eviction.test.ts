import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { evictionTable, evictionThresholds, formatThreshold, parseThreshold } from './eviction.ts';
import { loadConfig } from './load.ts';

async function load(...argv: string[]) {
  return loadConfig(argv, { files: memoryConfigFiles({}), cwd: '/' });
}

test('accepts quantities and percentages as thresholds', () => {
  assert.deepEqual(parseThreshold('10%'), { percent: 10 });
  assert.deepEqual(parseThreshold('0.5%'), { percent: 0.5 });
  assert.deepEqual(parseThreshold('1Ki'), { quantity: { nanos: 1024_000_000_000n, format: 'BinarySI' } });
  for (const text of ['', '%', 'x%', '1e1%', '10 %', 'lots'])
    assert.equal(parseThreshold(text), undefined, text);
  assert.equal(formatThreshold({ percent: 5 }), '5%');
});

test('applies the default eviction thresholds without a file, including the threshold for the memory of all pods', async () => {
  const { config } = await load();
  assert.deepEqual(
    evictionThresholds(config).map(({ signal, kind, value }) => [signal, kind, formatThreshold(value)]),
    [
      ['memory.available', 'hard', '100Mi'],
      ['nodefs.available', 'hard', '10%'],
      ['nodefs.inodesFree', 'hard', '5%'],
      ['imagefs.available', 'hard', '15%'],
      ['imagefs.inodesFree', 'hard', '5%'],
      ['allocatableMemory.available', 'hard', '100Mi'],
    ],
  );
});

test('assigns soft thresholds their grace period, and all thresholds their minimum reclaim', async () => {
  const { config } = await load(
    '--eviction-hard=memory.available<100Mi,nodefs.available<0%,imagefs.available<100%',
    '--eviction-soft=memory.available<500Mi',
    '--eviction-soft-grace-period=memory.available=1m30s',
    '--eviction-minimum-reclaim=memory.available=10%',
    '--enforce-node-allocatable=none',
  );
  assert.deepEqual(
    evictionThresholds(config).map(({ signal, kind, gracePeriodMs, minimumReclaim }) => [
      signal,
      kind,
      gracePeriodMs,
      minimumReclaim,
    ]),
    [
      ['memory.available', 'hard', 0, { percent: 10 }],
      ['memory.available', 'soft', 90_000, { percent: 10 }],
    ],
  );
});

test('lists every eviction signal in the table of thresholds, including disabled signals', async () => {
  const { config, origins } = await load(
    '--eviction-hard=memory.available<1Gi,nodefs.available<0%',
    '--eviction-soft=pid.available<1k',
    '--eviction-soft-grace-period=pid.available=30s',
  );
  const table = evictionTable(config, origins);
  assert.equal(table.length, 9);
  const row = (signal: string) => table.find((entry) => entry.signal === signal);
  assert.deepEqual(row('memory.available'), {
    signal: 'memory.available',
    hard: '1Gi',
    hardOrigin: '--eviction-hard',
    soft: undefined,
    gracePeriod: undefined,
    minimumReclaim: undefined,
  });
  assert.equal(row('nodefs.available')?.hard, undefined);
  assert.equal(row('imagefs.available')?.hard, undefined);
  assert.equal(row('allocatableMemory.available')?.hard, '1Gi');
  assert.deepEqual([row('pid.available')?.soft, row('pid.available')?.gracePeriod], ['1k', '30s']);
});
