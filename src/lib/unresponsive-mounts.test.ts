import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Mount } from './mountinfo.ts';
import { seededRandom } from './random.ts';
import { UnresponsiveMounts } from './unresponsive-mounts.ts';

const mount = (mountPoint: string, fsType: string): Mount => ({
  mountPoint,
  fsType,
  device: '0:40',
  root: '/',
  isShared: false,
  superOptions: [],
});

function createHarness() {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const touched: string[] = [];
  const dead = new Set<string>();
  const links = new Map<string, string>();
  let table = [
    mount('/', 'fuse.root'),
    mount('/mnt', 'ext4'),
    mount('/mnt/far', 'nfs4'),
    mount('/fuse', 'fuse'),
  ];
  const mounts = new UnresponsiveMounts({
    clock,
    random: seededRandom(1),
    mounts: async () => table,
    readLink: async (path) => {
      touched.push(path);
      return links.get(path);
    },
    probe: (point, signal) => {
      requests.push(point);
      if (!dead.has(point)) return Promise.resolve();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  /** The paths that may be accessed, each with the time after which it responds. */
  const check = async (path: string, ms = 0) => {
    const end = mounts.check(path).then(
      () => 'fine',
      (error) => `${error.code} ${error.message}`,
    );
    await clock.advance(ms);
    return await Promise.race([end, settle().then(() => 'waits')]);
  };
  const unmount = (point: string) => {
    table = table.filter(({ mountPoint }) => mountPoint !== point);
  };
  const mountAt = (point: string, fsType: string) => {
    table = [...table, mount(point, fsType)];
  };
  return { clock, asked: requests, touched, dead, links, mounts, check, unmount, mountAt };
}

const silent = 'MOUNT_SILENT the file system at /mnt/far (nfs4) does not answer';

describe('checks of paths', () => {
  it('a path on a new mount is detected immediately after a notification', async () => {
    const { dead, mounts, check, mountAt } = createHarness();
    assert.equal(await check('/mnt/new/a'), 'fine');
    mountAt('/mnt/new', 'nfs4');
    dead.add('/mnt/new');
    mounts.renew();
    assert.equal(await check('/mnt/new/a'), 'waits');
  });

  it('a path on a local disk is never probed', async () => {
    const { asked, check } = createHarness();
    for (const path of ['/', '/etc/x', '/mnt', '/mnt/farther', '/mnt/a/../b', '/mnt/../mnt/farther'])
      assert.equal(await check(path), 'fine');
    assert.deepEqual(asked, []);
  });

  it('paths in one directory are checked once a second', async () => {
    const { clock, touched, check, links, dead } = createHarness();
    for (const name of ['a', 'b', 'c']) assert.equal(await check(`/mnt/pods/${name}`), 'fine');
    assert.deepEqual(touched, ['/mnt', '/mnt/pods', '/mnt/pods/a', '/mnt/pods/b', '/mnt/pods/c']);
    await clock.advance(1_000);
    links.set('/mnt/pods', '/mnt/far');
    dead.add('/mnt/far');
    assert.match(await check('/mnt/pods/a', 5_000), /^MOUNT_SILENT/);
  });

  it('a path on a remote file system is probed at most once a second', async () => {
    const { clock, asked, check } = createHarness();
    for (const path of ['/mnt/far', '/mnt/far/a/b', '/mnt/./far//c', '/mnt/../../mnt/far'])
      assert.equal(await check(path), 'fine');
    assert.deepEqual(asked, ['/mnt/far']);
    await clock.advance(1_000);
    assert.equal(await check('/mnt/far'), 'fine');
    assert.equal(asked.length, 2);
  });

  it('a remote file system is probed before a path that leads to it through symbolic links is accessed', async () => {
    const { asked, touched, dead, links, check } = createHarness();
    links.set('/data', 'mnt/near/../other');
    links.set('/mnt/other', '/mnt/far/deep');
    dead.add('/mnt/far');
    assert.equal(await check('/data/file', 5_000), silent);
    assert.deepEqual(asked, ['/mnt/far']);
    assert.ok(!touched.some((path) => path.startsWith('/mnt/far')), touched.join());
  });

  it('a loop of symbolic links ends the check', async () => {
    const { links, check } = createHarness();
    links.set('/ring', '/ring');
    assert.equal(await check('/ring/x'), 'fine');
  });
});

describe('checks of an unresponsive file system', () => {
  it('a check waits five seconds for an unresponsive file system, and further checks fail immediately', async () => {
    const { asked, dead, mounts, check } = createHarness();
    dead.add('/mnt/far');
    const rest = Array.from({ length: 20 }, () => mounts.check('/mnt/far/x').catch((error) => error.code));
    assert.equal(await check('/mnt/far', 4_999), 'waits');
    assert.equal(await check('/mnt/far', 1), silent);
    assert.deepEqual(new Set(await Promise.all(rest)), new Set(['MOUNT_SILENT']));
    assert.equal(await check('/mnt/far'), silent);
    assert.deepEqual([asked, mounts.size], [['/mnt/far'], 1]);
    assert.equal(await check('/fuse/x'), 'fine');
  });

  it('an unresponsive file system is probed with growing intervals, and is usable once it responds', async () => {
    const { clock, asked, dead, mounts, check } = createHarness();
    dead.add('/mnt/far');
    for (let rounds = 0; rounds < 3_600; rounds++) await check('/mnt/far', 1_000);
    assert.ok(asked.length > 10 && asked.length < 25, `${asked.length}`);
    dead.clear();
    await clock.advance(300_000);
    assert.equal(await check('/mnt/far'), 'fine');
    assert.equal(mounts.size, 0);
  });

  it('the state of an unresponsive file system is dropped once it is unmounted', async () => {
    const { clock, dead, mounts, check, unmount } = createHarness();
    dead.add('/mnt/far');
    await check('/mnt/far', 5_000);
    unmount('/mnt/far');
    await clock.advance(1_000);
    assert.equal(await check('/mnt/far'), 'fine');
    assert.equal(mounts.size, 0);
  });

  it('an aborted check ends immediately', async () => {
    const { dead, mounts } = createHarness();
    dead.add('/mnt/far');
    const own = new AbortController();
    const failed = assert.rejects(mounts.check('/mnt/far', own.signal), /enough/);
    await settle();
    own.abort(new Error('enough'));
    await failed;
  });
});

it('finds remote mounts below a directory without accessing it', async () => {
  const { asked, mounts } = createHarness();
  assert.equal(await mounts.firstBelow('/mnt'), '/mnt/far');
  assert.equal(await mounts.firstBelow('/mnt/far'), '/mnt/far');
  assert.equal(await mounts.firstBelow('/mnt/fa'), undefined);
  assert.deepEqual(asked, []);
});

it('reads the mount table again after a change, and periodically', async () => {
  const clock = new VirtualClock();
  let [reads, links, change] = [0, 0, 'same' as 'changed' | 'same'];
  const mounts = new UnresponsiveMounts({
    clock,
    random: seededRandom(1),
    mounts: async () => {
      reads++;
      return [mount('/', 'ext4'), mount('/far', 'nfs4')];
    },
    watch: () => {
      const reported = change;
      change = 'same';
      return reported;
    },
    readLink: async () => {
      links++;
      return undefined;
    },
    probe: async () => {},
  });
  const readsAfter = async (ms: number) => {
    await clock.advance(ms);
    await Promise.all([mounts.check('/a/b'), mounts.check('/a/b')]);
    return reads;
  };
  assert.equal(await readsAfter(0), 1);
  assert.equal(await readsAfter(20_000), 1);
  const before = links;
  assert.equal(await readsAfter(1_000), 1);
  assert.ok(links > before, 'a symbolic link is resolved all the same');
  change = 'changed';
  assert.equal(await readsAfter(500), 1, 'not immediately');
  assert.equal(await readsAfter(500), 2);
  assert.equal(await readsAfter(29_000), 2);
  assert.equal(await readsAfter(1_000), 3);
});
