import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type LoadedConfig, loadConfig } from '../../config/index.ts';
import { collectLogs, KubelingError, Verbosity } from '../../lib/index.ts';
import { ConfigReload, changedFields } from './config-reload.ts';

const { signal } = new AbortController();

async function configOf(...argv: readonly string[]): Promise<LoadedConfig> {
  const files = {
    readFile: () => Promise.reject(new KubelingError('FILE_NOT_FOUND', 'the files do not exist')),
    readDirectory: async () => [],
  };
  return await loadConfig(argv, { files, cwd: '/' });
}

function createHarness(first: LoadedConfig) {
  const { logger, records } = collectLogs(new VirtualClock());
  const verbosity = new Verbosity(0);
  let next = async () => first;
  const reload = new ConfigReload(first.config, { load: () => next(), logger });
  reload.onChange(['logging.verbosity'], ({ logging }) => verbosity.setLevel(logging.verbosity));
  const rates: number[][] = [];
  reload.onChange(['kubeAPIQPS', 'kubeAPIBurst'], (config) =>
    rates.push([config.kubeAPIQPS, config.kubeAPIBurst]),
  );
  const after = async (load: () => Promise<LoadedConfig>) => {
    next = load;
    await reload.reload(signal);
    return [...records].at(-1);
  };
  return { verbosity, rates, after };
}

test('applies fields that can change at run time, and reports the other changed fields each time', async () => {
  const { verbosity, after } = createHarness(await configOf());
  const changed = await configOf('--v=4', '--max-pods=7');
  const reported = await after(async () => changed);
  assert.equal(verbosity.level, 4);
  assert.deepEqual(reported?.fields, { taken: ['logging.verbosity'], needRestart: ['maxPods'] });
  assert.deepEqual((await after(async () => changed))?.fields, { taken: [], needRestart: ['maxPods'] });
});

test('calls a listener of several fields once for all their changes', async () => {
  const { rates, after } = createHarness(await configOf());
  const changed = await configOf('--kube-api-qps=7', '--kube-api-burst=9');
  const reported = await after(async () => changed);
  assert.deepEqual(reported?.fields, { taken: ['kubeAPIBurst', 'kubeAPIQPS'], needRestart: [] });
  assert.deepEqual(rates, [[7, 9]]);
  await after(async () => changed);
  assert.deepEqual(rates, [[7, 9]]);
});

test('changes nothing when the configuration is invalid', async () => {
  const { verbosity, after } = createHarness(await configOf());
  const reported = await after(() => configOf('--max-pods=-7'));
  assert.equal(reported?.severity, 'error');
  assert.equal(verbosity.level, 0);
});

test('lists changed values by their field paths', () => {
  const before = { a: { b: 1, c: [1, 2] }, d: 'x', gone: 1 };
  const after = { a: { b: 2, c: [1, 2] }, d: 'x', come: { e: 1 } };
  assert.deepEqual(changedFields(before, after), ['a.b', 'come', 'gone']);
});
