import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { listBundles, shimSocketName } from './bundles.ts';
import { readInstance, writeInstance } from './instance-file.ts';
import { containerdLayout, type Layout } from './layout.ts';
import { removeFiles } from './leftover-files.ts';

const created: string[] = [];
let dir = '';
let layout: Layout = containerdLayout('/unused');
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bundles-'));
  created.push(dir);
  layout = containerdLayout(dir);
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

async function addFile(path: string, text = ''): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, text);
}

const addBundle = (namespace: string, id: string, cgroupsPath: string) =>
  addFile(
    join(layout.state, 'io.containerd.runtime.v2.task', namespace, id, 'config.json'),
    JSON.stringify({ linux: { cgroupsPath } }),
  );

describe('listBundles', () => {
  it('finds the containers of all namespaces with their cgroups', async () => {
    await addBundle('k8s.io', 'c1', '/kubepods/besteffort/pod1/c1');
    await addBundle('moby', 'c2', '');
    await mkdir(join(layout.root, 'io.containerd.grpc.v1.cri/sandboxes/s1'), { recursive: true });
    assert.deepEqual(await listBundles(layout), [
      { namespace: 'k8s.io', id: 'c1', cgroup: '/kubepods/besteffort/pod1/c1' },
      { namespace: 'moby', id: 'c2', cgroup: '/moby/c2' },
      { namespace: 'k8s.io', id: 's1', cgroup: '/k8s.io/s1' },
    ]);
  });

  it('ignores a spec with the cgroup of another container', async () => {
    await addBundle('k8s.io', 'c1', '/kubepods');
    await addBundle('k8s.io', 'c2', '/');
    assert.deepEqual(
      (await listBundles(layout)).map((bundle) => bundle.cgroup),
      ['/k8s.io/c1', '/k8s.io/c2'],
    );
  });

  it('returns no containers for an empty state directory', async () => {
    assert.deepEqual(await listBundles(layout), []);
  });
});

describe('shimSocketName', () => {
  it("computes the same socket name as containerd's shims", () => {
    assert.equal(
      shimSocketName(containerdLayout('/data'), { namespace: 'k8s.io', id: 'abc', cgroup: '' }),
      '3ba5884288a1604d98c051a240b9d65b4e68c5f6fc5f412caf5c1663062a567a',
    );
  });
});

describe('removeFiles', () => {
  const places = () => ({
    cniResults: join(dir, 'results'),
    shimSockets: join(dir, 's'),
    runcRoot: join(dir, 'runc'),
  });

  async function fill() {
    await addBundle('k8s.io', 'c1', '/k8s.io/c1');
    const bundles = await listBundles(layout);
    for (const bundle of bundles) await addFile(join(dir, 's', shimSocketName(layout, bundle)));
    for (const name of [
      `${layout.network}-c1-eth0`,
      'cni-loopback-c1-lo',
      'cni-loopback-c9-lo',
      'klgother000-c1-eth0',
    ]) {
      await addFile(join(dir, 'results', name));
    }
    await addFile(join(dir, 's', 'foreign'));
    await addFile(join(dir, 'runc/k8s.io/c1/state.json'));
    await addFile(join(layout.root, 'content'));
    for (const path of [layout.lockFile, layout.pidFile, layout.config, layout.instanceFile])
      await addFile(path);
    await addFile(join(layout.ipamDir, 'net', '10.0.0.2'));
    return bundles;
  }

  it('keeps images, the instance file and the configuration for the next start, and never removes files of other programs', async () => {
    const { problems } = await removeFiles(
      await fill(),
      { images: 'keep' },
      { layout, places: places(), procDir: '/proc' },
    );
    assert.deepEqual(problems, []);
    assert.deepEqual((await readdir(layout.dir)).toSorted(), [
      'cni',
      'config.toml',
      'instance.json',
      'lock',
      'root',
    ]);
    assert.deepEqual((await readdir(join(dir, 'results'))).toSorted(), [
      'cni-loopback-c9-lo',
      'klgother000-c1-eth0',
    ]);
    assert.deepEqual(await readdir(join(dir, 's')), ['foreign']);
    assert.deepEqual(await readdir(join(dir, 'runc/k8s.io')), []);
  });

  it("removes everything except the lock and the user's registry settings when images are removed too", async () => {
    const bundles = await fill();
    const deps = { layout, places: places(), procDir: '/proc' };
    await addFile(join(layout.registryConfig, 'example.com/hosts.toml'));
    await removeFiles(bundles, { images: 'remove' }, deps);
    assert.deepEqual((await readdir(layout.dir)).toSorted(), ['certs.d', 'lock']);
    await rm(join(layout.registryConfig, 'example.com'), { recursive: true });
    await removeFiles(bundles, { images: 'remove' }, deps);
    assert.deepEqual(await readdir(layout.dir), ['lock']);
  });

  it('does not remove a directory with a mount', async () => {
    const bundles = await fill();
    const mounted = join(layout.state, 'somewhere');
    await addFile(join(dir, 'proc/self/mountinfo'), `22 1 254:0 / ${mounted} rw - tmpfs tmpfs rw\n`);
    const deps = { layout, places: places(), procDir: join(dir, 'proc') };
    const { problems } = await removeFiles(bundles, { images: 'keep' }, deps);
    assert.deepEqual(problems, [`Cannot remove ${layout.state} as ${mounted} is still mounted`]);
    assert((await readdir(layout.dir)).includes('state'));
  });
});

describe('instance file of a private containerd', () => {
  it('reads back the written subnet, snapshotter and boot ID, and reads the valid parts of a damaged file', async () => {
    const instance = { subnet: '10.128.0.0/22', snapshotter: 'native', bootId: 'b' } as const;
    const file = join(dir, 'instance.json');
    assert.deepEqual(await readInstance(file), {});
    await writeInstance(file, instance);
    assert.deepEqual(await readInstance(file), instance);
    for (const [text, expected] of [
      ['', {}],
      ['null', {}],
      ['{"subnet":"10.0.0.1/8"}', {}],
      ['{"subnet":7,"snapshotter":"zfs","bootId":"b"}', { bootId: 'b' }],
    ] as const) {
      await writeFile(file, text);
      assert.deepEqual(await readInstance(file), expected);
    }
  });
});
