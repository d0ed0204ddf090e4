import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { hostFiles, loadConfig } from '../../config/index.ts';
import { cgroupEvents, kubeletSettings } from './kubelet-settings.ts';

async function settingsWith(...flags: readonly string[]) {
  const argv = [`--root-dir=${tmpdir()}`, '--fail-swap-on=false', ...flags];
  const { signal } = new AbortController();
  return await kubeletSettings(await loadConfig(argv, { files: hostFiles(), cwd: '/' }, signal));
}

test('rejects an ephemeral-storage reservation larger than the disk, except with --local-storage-capacity-isolation=false', async () => {
  await settingsWith('--system-reserved=ephemeral-storage=1Mi');
  const tooMuch = '--kube-reserved=ephemeral-storage=8Ei';
  await assert.rejects(settingsWith(tooMuch), {
    code: 'RESERVATION_TOO_LARGE',
    message: /: ephemeral-storage: \d+ of \d+ bytes$/,
  });
  await settingsWith(tooMuch, '--local-storage-capacity-isolation=false');
});

test('limits the number of pods by the configured pods per core', async () => {
  const { maxPods, capacity } = await settingsWith('--pods-per-core=2');
  assert.equal(maxPods, 2 * Math.ceil(capacity.milliCpu / 1_000));
});

test('disables log rotation when the configured maximum log size is zero', async () => {
  assert.equal((await settingsWith('--container-log-max-size=1Mi')).containerLogs?.maxBytes, 2 ** 20);
  for (const size of ['0', '-1'])
    assert.equal((await settingsWith(`--container-log-max-size=${size}`)).containerLogs, undefined);
});

test('reports cgroup v1 with a node event', () => {
  assert.deepEqual(
    cgroupEvents('v1').map(({ type, reason }) => [type, reason]),
    [['Warning', 'CgroupV1']],
  );
  assert.deepEqual(cgroupEvents('v2'), []);
});
