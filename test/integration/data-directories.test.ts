import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { prepareDirectories, unshareRoot } from '../../src/cli/run/kubelet-directories.ts';
import { mountOf, parseMountinfo, realClock } from '../../src/lib/index.ts';

const clock = realClock();
const { signal } = new AbortController();
const modeOf = (path: string) => statSync(path).mode & 0o7777;

test('creates data directories for root and its group only and keeps the modes of existing ones', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kubeling-directories-'));
  try {
    const [rootDir, podLogsDir] = [join(folder, 'root'), join(folder, 'log/pods')];
    mkdirSync(join(rootDir, 'plugins'), { recursive: true, mode: 0o755 });
    await prepareDirectories({ rootDir, podLogsDir }, clock, signal);
    for (const name of ['pods', 'plugins_registry', 'pod-resources', 'device-plugins'])
      assert.equal(modeOf(join(rootDir, name)), 0o750, name);
    assert.equal(modeOf(podLogsDir), 0o750);
    assert.equal(modeOf(join(rootDir, 'plugins')), 0o755);
  } finally {
    await unshareRoot(join(folder, 'root'), clock, signal);
    rmSync(folder, { recursive: true });
  }
});

test('finds the deepest mount above a directory, and the last of several mounts at one path', () => {
  const mounts = parseMountinfo(
    [
      '1 0 8:1 / / rw - ext4 /dev/vda rw',
      '2 1 8:1 /x /var/lib/kubelet rw - ext4 /dev/vda rw',
      '3 2 8:1 /x /var/lib/kubelet rw shared:7 - ext4 /dev/vda rw',
      '4 1 8:1 /y /var/lib/kube rw - ext4 /dev/vda rw',
    ].join('\n'),
  );
  assert.equal(mountOf('/var/lib/kubelet/pods', mounts)?.isShared, true);
  assert.equal(mountOf('/var/lib/kubelet', mounts)?.isShared, true);
  assert.equal(mountOf('/var/lib/kubeling', mounts)?.mountPoint, '/');
});
