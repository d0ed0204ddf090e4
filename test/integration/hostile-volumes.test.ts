import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { isKind, realClock, seededRandom } from '../../src/lib/index.ts';
import { HostNetworkMounts, HostVolumeFiles, NfsVolumes } from '../../src/volumes/index.ts';
import { podWith, worldUid } from '../fakes/payload-world.ts';

const { signal } = new AbortController();
const isRefusal = (error: unknown) => isKind(error, 'Failed');

/**
 * Uses the real mount(8). The pod has written a file system table (fstab) into its volume. Its NFS
 * volume has the server name `-iT<directory>` and the path `/fstab`: mount(8) would parse
 * `-iT<directory>:/fstab` as an option to read that table.
 */
describe('an NFS server name that is an option of mount(8)', { timeout: 120_000 }, () => {
  let folder: string;
  let secret: string;
  let place: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-hostile-'));
    secret = join(folder, 'host');
    place = join(folder, 'pods', worldUid, 'volumes/kubernetes.io~nfs/data');
    for (const path of [secret, join(folder, 'empty-dir:')]) await mkdir(path, { recursive: true });
    await writeFile(join(secret, 'of-the-host'), '');
    await writeFile(join(folder, 'empty-dir:', 'fstab'), `${secret} ${place} none bind 0 0\n`);
  });

  afterEach(() => {
    if (mounted()) execFileSync('umount', [place]);
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  const mounted = () => readFileSync('/proc/self/mountinfo', 'utf8').includes(place);
  const attack = () => ({ server: `-iT${join(folder, 'empty-dir')}`, path: '/fstab' });

  it('an NFS server name that is an option exposes nothing of the host to the pod', async () => {
    const mounts = new HostNetworkMounts({ clock: realClock(), mounted: () => {} });
    const files = new HostVolumeFiles(realClock());
    const parts = { podsDir: join(folder, 'pods'), files, mounts, clock: realClock() };
    const volumes = new NfsVolumes({ ...parts, random: seededRandom(1) });
    const volume = { name: 'data', ...attack(), readOnly: false, mountOptions: [] };
    const pod = podWith([{ name: 'data', nfs: attack() }]);
    await assert.rejects(volumes.setUp(pod, volume, signal), {
      code: 'VOLUME_UNUSABLE',
      message: /^invalid nfs\.server: must be /,
    });
    assert.equal(mounted(), false);
  });

  it('an NFS server name that is an option is rejected by every caller of mount(8)', async () => {
    await mkdir(place, { recursive: true });
    const mounts = new HostNetworkMounts({ clock: realClock(), mounted: () => {} });
    const { server, path } = attack();
    const mount = { type: 'nfs', source: `${server}:${path}`, directory: place, options: [] } as const;
    await assert.rejects(mounts.mount(mount, signal), isRefusal);
    assert.equal(mounted(), false);
    assert.deepEqual(await readdir(place), []);
  });
});

describe('external programs of this machine that kubeling calls', { timeout: 120_000 }, () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-hostile-'));
    await writeFile(join(folder, '-disk'), Buffer.alloc(2 ** 20));
    await mkdir(join(folder, '-directory'));
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  // The order matters: a file system is created, then found and grown.
  for (const [program, ...args] of [
    ['mkfs.ext4', '-F', '-m0', '-q', '--', '-disk'],
    ['blkid', '-p', '-s', 'TYPE', '-o', 'export', '--', '-disk'],
    ['resize2fs', '--', '-disk'],
    ['stat', '-f', '-c', '%T', '--', '-disk'],
    ['lsattr', '-p', '-d', '--', '-directory'],
  ] as const)
    it(`${program} treats every argument after -- as a file`, () => {
      execFileSync(program, args, { cwd: folder, stdio: 'pipe' });
    });

  it('mount and unmount work at a path with options, spaces and line feeds', async () => {
    // Makes the mount system calls fail, so that mount(8) is used: for system calls no argument is
    // an option.
    const files = new HostVolumeFiles(realClock(), { mount: () => 'failed', unmount: () => 'failed' });
    for (const name of ['-o bind', 'a\nb', '--', 'a,b"c']) {
      const directory = join(folder, name);
      await mkdir(directory);
      await files.mountMemory(directory, 4096n, signal);
      assert.equal(await files.mountAt(directory), 'memory');
      assert.equal(await files.unmount(directory, signal), 'done');
      assert.equal(await files.mountAt(directory), 'none');
    }
  });
});
