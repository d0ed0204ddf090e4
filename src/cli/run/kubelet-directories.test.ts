import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, parseMountinfo } from '../../lib/index.ts';
import { isSelfBind, planSharing, prepareDirectories, reportOpenManifests } from './kubelet-directories.ts';

const root = '1 0 8:1 / / rw - ext4 /dev/vda rw';
const place = '/var/lib/kubelet';
const table = (...lines: readonly string[]) => parseMountinfo([root, ...lines].join('\n'));

describe('planSharing', () => {
  it('changes no mounts for a directory on a shared mount', () => {
    const shared = parseMountinfo('1 0 8:1 / / rw shared:1 - ext4 /dev/vda rw');
    assert.deepEqual(planSharing(place, shared), { kind: 'shared' });
    const own = table(`2 1 8:1 ${place} ${place} rw shared:1 - ext4 /dev/vda rw`);
    assert.deepEqual(planSharing(place, own), { kind: 'shared' });
  });

  it('bind-mounts a directory that is not on a shared mount onto itself, and makes that mount shared', () => {
    const calls = [
      ['--bind', '--', place, place],
      ['--make-rshared', '--', place],
    ];
    assert.deepEqual(planSharing(place, table()), { kind: 'change', calls });
    const beside = table(`2 1 0:9 / ${place}-2/pods rw - tmpfs tmpfs rw`);
    assert.deepEqual(planSharing(place, beside), { kind: 'change', calls });
  });

  it('shares the existing mount of the directory, whatever is mounted below it', () => {
    const disk = table(
      `2 1 8:2 / ${place} rw master:4 - ext4 /dev/vdb rw`,
      `3 2 0:9 / ${place}/x rw - tmpfs t rw`,
    );
    assert.deepEqual(planSharing(place, disk), { kind: 'change', calls: [['--make-rshared', '--', place]] });
  });

  it('does not bind-mount a directory with mounts below it, which would be covered', () => {
    const used = table(
      `2 1 0:9 / ${place}/pods/a rw - tmpfs t rw`,
      `3 1 0:10 / ${place}/pods/b rw - tmpfs t rw`,
    );
    const plan = planSharing(place, used);
    assert.ok(plan.kind === 'refused');
    assert.match(plan.because, /^\/var\/lib\/kubelet\/pods\/a and 1 more is mounted below it;/);
  });
});

describe('isSelfBind', () => {
  it('recognizes a directory that is bind-mounted onto itself', () => {
    const bind = `2 1 8:1 ${place} ${place} rw shared:1 - ext4 /dev/vda rw`;
    assert.equal(isSelfBind(place, table(bind)), true);
    assert.equal(isSelfBind(place, table(bind, bind)), true);
    const below = [
      '2 1 8:9 / /var rw - ext4 /dev/vdb rw',
      `3 2 8:9 /lib/kubelet ${place} rw - ext4 /dev/vdb rw`,
    ];
    assert.equal(isSelfBind(place, table(...below)), true);
  });

  it('returns false for a disk, a bind mount of another directory and a missing mount', () => {
    assert.equal(isSelfBind(place, table()), false);
    assert.equal(isSelfBind(place, table(`2 1 8:2 / ${place} rw - ext4 /dev/vdb rw`)), false);
    assert.equal(isSelfBind(place, table(`2 1 8:1 /srv/kubelet ${place} rw - ext4 /dev/vda rw`)), false);
    const onDisk = [
      `2 1 8:2 / ${place} rw - ext4 /dev/vdb rw`,
      `3 2 8:2 / ${place} rw shared:1 - ext4 /dev/vdb rw`,
    ];
    assert.equal(isSelfBind(place, table(...onDisk)), true, 'a disk that is mounted a second time');
  });
});

describe('kubelet directories that other users can change', () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kubeling-directories-')));
  const shared = join(base, 'shared');
  mkdirSync(shared);
  chmodSync(shared, 0o777);
  after(() => rmSync(base, { recursive: true, force: true }));
  const { signal } = new AbortController();

  it('rejects a root directory that other users can change, also through a link', async () => {
    symlinkSync(shared, join(base, 'link'));
    for (const rootDir of [shared, join(shared, 'kubelet'), join(base, 'link', 'kubelet')]) {
      const directories = { rootDir, podLogsDir: join(base, 'logs') };
      await assert.rejects(prepareDirectories(directories, new VirtualClock(), signal), {
        code: 'ROOT_DIR_UNUSABLE',
        message: /shared is writable by other users/,
      });
    }
  });

  it('logs a warning if other users can change a manifest directory that contains manifests', async () => {
    const logs = collectLogs(new VirtualClock());
    for (const path of ['', join(base, 'missing'), base, shared, join(shared, 'manifests')])
      await reportOpenManifests(path, logs.logger);
    mkdirSync(join(shared, 'manifests'));
    await reportOpenManifests(join(shared, 'manifests'), logs.logger);
    const paths = [...logs.records].map(({ fields }) => fields?.['path']);
    assert.deepEqual(paths, [shared, join(shared, 'manifests')]);
  });
});
