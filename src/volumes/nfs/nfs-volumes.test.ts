import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError, seededRandom } from '../../lib/index.ts';
import type { NetworkMount, NetworkMounts, Unmounting } from './nfs-volumes.ts';
import { type NfsVolume, NfsVolumes } from './nfs-volumes.ts';

const { signal } = new AbortController();
const volume: NfsVolume = { name: 'data', server: 's', path: '/export', readOnly: false, mountOptions: [] };
const kind = `/pods/${worldUid}/volumes/kubernetes.io~nfs`;
const place = `${kind}/data`;
const pod = podWith([{ name: 'data', nfs: { server: 's', path: '/export' } }]);
const late = () => new KubelingError('DEADLINE_EXCEEDED', 'too late');

/** Simulates NFS servers and the mount table of the kernel; the test sets how they fail. */
class Mounts implements NetworkMounts {
  readonly mounted: NetworkMount[] = [];
  readonly log: string[] = [];
  mounting: 'works' | 'fails' | 'half' = 'works';
  unmounting: 'works' | 'hangs' | 'busy' | 'stale' | 'hopeless' = 'works';
  state: 'answers' | 'broken' | 'silent' = 'answers';

  async isMounted(directory: string) {
    return this.mounted.some((mount) => mount.directory === directory);
  }

  async mount(mount: NetworkMount) {
    const { source, directory, options } = mount;
    this.log.push(`mount ${options.join(',')} ${source} ${directory}`);
    if (this.mounting !== 'fails') this.mounted.push(mount);
    if (this.mounting !== 'works') throw new KubelingError('VOLUME_UNUSABLE', 'mount failed: refused');
  }

  async unmount(directory: string, how: Unmounting) {
    this.log.push(`${how} unmount`);
    if (how === 'lazy') return this.#gone(directory);
    const isPlain = how === 'plain';
    if (this.unmounting === 'busy') return 'busy' as const;
    if (this.unmounting === 'hopeless' || (this.unmounting === 'hangs' && isPlain)) throw late();
    if (this.unmounting === 'stale' && isPlain) throw new KubelingError('VOLUME_REMOVE', 'stale file handle');
    return this.#gone(directory);
  }

  #gone(directory: string) {
    const index = this.mounted.findLastIndex((mount) => mount.directory === directory);
    this.mounted.splice(index, 1);
    return 'done' as const;
  }

  async check() {
    if (this.state === 'silent') throw late();
    return this.state;
  }
}

function createEnvironment() {
  const [files, mounts, clock] = [new MemoryVolumeFiles(), new Mounts(), new VirtualClock()];
  const make = () => new NfsVolumes({ podsDir: '/pods', files, mounts, clock, random: seededRandom(1) });
  const detaching = () => {
    const reported: (readonly [string, string])[] = [];
    const detached = (at: string, why: string) => void reported.push([at, why]);
    const volumes = new NfsVolumes({
      podsDir: '/pods',
      files,
      mounts,
      clock,
      random: seededRandom(1),
      detached,
    });
    return { volumes, told: reported };
  };
  return { files, mounts, clock, make, detaching, volumes: make() };
}

describe('an NFS volume', () => {
  for (const [what, changes, expected] of [
    ['without options', {}, ' s:/export'],
    ['read-only', { readOnly: true }, 'ro s:/export'],
    [
      'with each option once and in order',
      { readOnly: true, mountOptions: ['vers=4.1', 'hard', 'ro'] },
      'hard,ro,vers=4.1 s:/export',
    ],
    ['with a host name', { server: 'files.example.org' }, ' files.example.org:/export'],
    ['with an IPv6 address', { server: 'fd00::1' }, ' [fd00::1]:/export'],
  ] as const) {
    it(`mounts an NFS volume ${what}, and unmounts it`, async () => {
      const { files, mounts, volumes } = createEnvironment();
      await volumes.setUp(pod, { ...volume, ...changes }, signal);
      assert.deepEqual(mounts.log, [`mount ${expected} ${place}`]);
      const found = files.entry(place);
      assert.equal(found?.kind === 'directory' && found.mode, 0o750);
      assert.equal(volumes.mountPathOf(worldUid, 'data'), place);
      await volumes.remove(worldUid, signal);
      assert.deepEqual([mounts.mounted, await files.kindAt(kind)], [[], undefined]);
      await volumes.remove(worldUid, signal);
    });
  }

  it('detects a mounted NFS volume after a restart of the kubelet', async () => {
    const { mounts, volumes, make } = createEnvironment();
    await volumes.setUp(pod, volume, signal);
    await volumes.setUp(pod, volume, signal);
    await make().setUp(pod, volume, signal);
    assert.equal(mounts.log.length, 1);
  });

  for (const mounting of ['fails', 'half'] as const) {
    it(`leaves no files and retries when an NFS volume ${mounting === 'half' ? 'is half mounted' : 'cannot be mounted'}`, async () => {
      const { files, mounts, clock, volumes } = createEnvironment();
      mounts.mounting = mounting;
      await assert.rejects(volumes.setUp(pod, volume, signal), /^KubelingError: mount failed: refused$/);
      assert.deepEqual([mounts.mounted, await files.kindAt(place)], [[], undefined]);
      mounts.mounting = 'works';
      await assert.rejects(volumes.setUp(pod, volume, signal), /refused/);
      assert.equal(volumes.size, 1);
      await clock.advance(500);
      await volumes.setUp(pod, volume, signal);
      assert.deepEqual([mounts.mounted.length, volumes.size], [1, 0]);
    });
  }

  it('drops the failed mount of an NFS volume when its pod is removed', async () => {
    const { mounts, volumes } = createEnvironment();
    mounts.mounting = 'fails';
    await assert.rejects(volumes.setUp(pod, volume, signal), /refused/);
    await volumes.remove(worldUid, signal);
    assert.equal(volumes.size, 0);
  });

  it('reports both errors if a half-finished NFS mount cannot be undone', async () => {
    const { mounts, volumes } = createEnvironment();
    mounts.mounting = 'half';
    mounts.unmounting = 'hopeless';
    await assert.rejects(
      volumes.setUp(pod, volume, signal),
      /mount failed: refused; the mount cannot be undone: too late/,
    );
  });

  it('mounts a broken NFS volume again, and keeps it when the server does not respond', async () => {
    const { mounts, clock, volumes } = createEnvironment();
    await volumes.setUp(pod, volume, signal);
    mounts.state = 'silent';
    await assert.rejects(volumes.setUp(pod, volume, signal), /too late/);
    assert.equal(mounts.log.length, 1);
    await clock.advance(500);
    mounts.state = 'broken';
    await volumes.setUp(pod, volume, signal);
    assert.deepEqual(mounts.log.slice(1), ['plain unmount', `mount  s:/export ${place}`]);
  });

  for (const unmounting of ['hangs', 'stale'] as const) {
    it(`unmounts an NFS volume by force when the regular unmount ${unmounting === 'hangs' ? 'hangs' : 'fails'}`, async () => {
      const { mounts, volumes } = createEnvironment();
      await volumes.setUp(pod, volume, signal);
      mounts.unmounting = unmounting;
      await volumes.remove(worldUid, signal);
      assert.deepEqual(mounts.log.slice(1), ['plain unmount', 'force unmount']);
      assert.deepEqual(mounts.mounted, []);
    });
  }

  it('does not unmount an NFS volume by force while it is in use', async () => {
    const { mounts, clock, volumes } = createEnvironment();
    await volumes.setUp(pod, volume, signal);
    mounts.unmounting = 'busy';
    const refused = assert.rejects(volumes.remove(worldUid, signal), {
      code: 'VOLUME_REMOVE',
      message: `${place} is still in use`,
    });
    await clock.advance(3_000);
    await refused;
    assert.ok(!mounts.log.includes('force unmount'));
    mounts.unmounting = 'works';
    await clock.advance(1_000);
    await volumes.remove(worldUid, signal);
    assert.deepEqual(mounts.mounted, []);
  });

  it('keeps the directory and content of an NFS volume that cannot be unmounted', async () => {
    const { files, mounts, clock, volumes } = createEnvironment();
    await volumes.setUp(pod, volume, signal);
    mounts.unmounting = 'hopeless';
    await assert.rejects(volumes.remove(worldUid, signal), /too late/);
    assert.equal(await files.kindAt(place), 'directory');
    mounts.unmounting = 'works';
    await files.writeFile(`${place}/theirs`, Buffer.from('x'), { mode: 0o600 });
    await clock.advance(1_000);
    await assert.rejects(volumes.remove(worldUid, signal), /has content that was not put there by this node/);
    assert.equal(files.text(`${place}/theirs`), 'x');
  });

  describe('an NFS volume of a dead server, with detaching enabled', () => {
    for (const unmounting of ['hopeless', 'busy'] as const) {
      it(`detaches and reports the volume of a dead server whose unmount is ${unmounting}`, async () => {
        const { files, mounts, clock, detaching } = createEnvironment();
        const { volumes, told } = detaching();
        await volumes.setUp(pod, volume, signal);
        mounts.unmounting = unmounting;
        mounts.state = 'silent';
        const removed = volumes.remove(worldUid, signal);
        await clock.advance(3_000);
        await removed;
        assert.equal(mounts.log.at(-1), 'lazy unmount');
        assert.deepEqual([mounts.mounted, await files.kindAt(place)], [[], undefined]);
        const why = unmounting === 'busy' ? `${place} is still in use` : 'too late';
        assert.deepEqual(told, [[place, why]]);
      });
    }

    it('keeps all data below the mount path of a volume that it detaches', async () => {
      const { files, mounts, detaching } = createEnvironment();
      const { volumes } = detaching();
      await volumes.setUp(pod, volume, signal);
      await files.writeFile(`${place}/theirs`, Buffer.from('x'), { mode: 0o600 });
      mounts.unmounting = 'hopeless';
      mounts.state = 'broken';
      await assert.rejects(
        volumes.remove(worldUid, signal),
        /has content that was not put there by this node/,
      );
      assert.equal(files.text(`${place}/theirs`), 'x');
    });

    it('does not detach a volume whose server responds or that a pod still uses', async () => {
      const { mounts, clock, detaching } = createEnvironment();
      const { volumes, told } = detaching();
      await volumes.setUp(pod, volume, signal);
      mounts.unmounting = 'hopeless';
      mounts.state = 'broken';
      await assert.rejects(volumes.setUp(pod, volume, signal), /too late/);
      mounts.state = 'answers';
      await clock.advance(1_000);
      await assert.rejects(volumes.remove(worldUid, signal), /too late/);
      assert.ok(!mounts.log.includes('lazy unmount'));
      assert.deepEqual([told, mounts.mounted.length], [[], 1]);
    });
  });

  it('does not follow a symbolic link in place of the volume directory', async () => {
    const { files, mounts, volumes } = createEnvironment();
    await files.makeDirectory(`/pods/${worldUid}/volumes`, 0o750);
    await files.makeDirectory('/elsewhere/data', 0o750);
    await files.link('/elsewhere', kind);
    await assert.rejects(volumes.setUp(pod, volume, signal), /is not a directory/);
    await volumes.remove(worldUid, signal);
    assert.deepEqual([mounts.log, await files.kindAt('/elsewhere/data')], [[], 'directory']);
  });
});

describe('an NFS volume with invalid input', () => {
  const long = 'a'.repeat(65_536);
  const v6 = 'an IPv6 address: current value is';

  for (const server of [
    '-iT/x',
    '--',
    '',
    'a,b',
    'a b',
    'a\nb',
    'a\0b',
    '$(id)',
    'a:b',
    'LABEL=x',
    '[a]',
    '[::1',
    long,
  ]) {
    it(`rejects the NFS server ${JSON.stringify(server.slice(0, 10))} before it creates anything`, async () => {
      const { files, mounts, volumes } = createEnvironment();
      await assert.rejects(volumes.setUp(pod, { ...volume, server }, signal), (error: Error) => {
        assert.match(error.message, /^invalid nfs\.server: must be a host name, an IPv4 address or /);
        assert.ok(error.message.includes(v6) && error.message.length < 300, error.message);
        return true;
      });
      assert.deepEqual([mounts.log, await files.kindAt(kind)], [[], undefined]);
    });
  }

  for (const path of ['', 'export', '-o', '/a\nb', '/a\0b', `/${long}`])
    it(`rejects the NFS path ${JSON.stringify(path.slice(0, 10))}`, async () => {
      const { mounts, volumes } = createEnvironment();
      const refused = volumes.setUp(pod, { ...volume, path }, signal);
      await assert.rejects(refused, /^KubelingError: invalid nfs\.path: must be /);
      assert.deepEqual(mounts.log, []);
    });

  for (const option of [
    'bind',
    'loop',
    'x-mount.mkdir',
    'hard,X-mount.subdir=/',
    'helper=x',
    'a b',
    '-o',
    'a=b\nc',
    'a="b,c"',
  ])
    it(`rejects the NFS mount option ${JSON.stringify(option)}`, async () => {
      const { mounts, volumes } = createEnvironment();
      const refused = volumes.setUp(pod, { ...volume, mountOptions: [option] }, signal);
      await assert.rejects(refused, /^KubelingError: invalid mountOptions: must be /);
      assert.deepEqual(mounts.log, []);
    });

  for (const [server, source] of [
    ['files-1.example_org', 'files-1.example_org'],
    ['192.0.2.1', '192.0.2.1'],
    ['[fd00::1]', '[fd00::1]'],
    ['fe80::1%eth0', '[fe80::1%eth0]'],
  ])
    it(`accepts the NFS server ${server} and a path with blanks and commas`, async () => {
      const { mounts, volumes } = createEnvironment();
      await volumes.setUp(pod, { ...volume, server: String(server), path: '/a b/../c,d' }, signal);
      assert.equal(mounts.mounted[0]?.source, `${source}:/a b/../c,d`);
    });

  it('splits several NFS mount options in one entry and keeps commas in a label', async () => {
    const { mounts, volumes } = createEnvironment();
    const mountOptions = ['nfsvers=4.1,hard', 'context="u:r:t:s0:c1,c2"', 'sec=krb5p', ''];
    await volumes.setUp(pod, { ...volume, mountOptions }, signal);
    const options = ['context="u:r:t:s0:c1,c2"', 'hard', 'nfsvers=4.1', 'sec=krb5p'];
    assert.deepEqual(mounts.mounted[0]?.options, options);
  });
});
