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
 * With the real mount(8). A pod has written a table of file systems into a volume of its own, and has mount(8) read it by a
 * server that is an option: `-iT<directory>:` and the path `/fstab`.
 */
describe('a server of NFS that is an option of mount(8)', { timeout: 120_000 }, () => {
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

  it('shows the pod nothing of the host', async () => {
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

  it('is no option to what runs mount(8) either, whoever asks for it', async () => {
    await mkdir(place, { recursive: true });
    const mounts = new HostNetworkMounts({ clock: realClock(), mounted: () => {} });
    const { server, path } = attack();
    const mount = { type: 'nfs', source: `${server}:${path}`, directory: place, options: [] } as const;
    await assert.rejects(mounts.mount(mount, signal), isRefusal);
    assert.equal(mounted(), false);
    assert.deepEqual(await readdir(place), []);
  });
});
