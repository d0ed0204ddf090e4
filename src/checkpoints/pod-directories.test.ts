import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../test/fakes/memory-runtime-files.ts';
import { podUid } from '../pods/index.ts';
import { realRuntimeFiles } from '../runtime/index.ts';
import { PodDirectories } from './pod-directories.ts';

const { signal } = new AbortController();
const uid = podUid('u1');
const pod = '/root/pods/u1';

function createHarness(mounts: readonly string[] = []) {
  const store = mapFileStore();
  const files = memoryRuntimeFiles(store);
  const directories = new PodDirectories('/root', files, async () => mounts);
  const remove = (isWanted = () => false) => directories.remove(uid, isWanted, signal);
  return { store, files, directories, remove };
}

test('removes everything of a pod, including the content of its emptyDir volumes', async () => {
  const { directories, files, store, remove } = createHarness();
  await directories.create(uid, signal);
  store.write(`${pod}/etc-hosts`, 'hosts');
  store.write(`${pod}/volumes/kubernetes.io~empty-dir/cache/file`, 'content');
  await files.makeDirectory(`${pod}/volumes/kubernetes.io~nfs/share`, 0o750);
  assert.deepEqual(await remove(), { kind: 'removed' });
  assert.deepEqual(await directories.list(), []);
  assert.deepEqual(store.paths(), []);
});

test('removes the marker of an emptyDir volume before its content, and does not follow links', async () => {
  const { files } = createHarness();
  const removed: string[] = [];
  const removeTree = async (directory: string) => void removed.push(directory);
  const directories = new PodDirectories('/root', files, async () => [], { removeTree });
  const [markers, content] = ['plugins', 'volumes'].map((name) => `${pod}/${name}/kubernetes.io~empty-dir`);
  await files.makeDirectory(`${content}/cache`, 0o777);
  await files.makeDirectory(pod, 0o750);
  await files.makeDirectory(`${pod}/volumes`, 0o750);
  await files.link('/precious', `${pod}/plugins`);
  await directories.removeEmptyDirs(uid, signal);
  assert.deepEqual(removed.splice(0), [content]);
  await files.remove(`${pod}/plugins`);
  await files.makeDirectory(`${markers}/cache`, 0o750);
  await directories.removeEmptyDirs(uid, signal);
  assert.deepEqual(removed, [markers, content]);
});

test('releases the quotas of emptyDir volumes before it removes them', async () => {
  const { files } = createHarness();
  const reported: string[] = [];
  const directories = new PodDirectories('/root', files, async () => [], {
    removeTree: async (directory) => void reported.push(`remove ${directory}`),
    release: async (held) => void reported.push(`release ${held.join(' ')}`),
  });
  const content = `${pod}/volumes/kubernetes.io~empty-dir`;
  for (const name of ['a', 'b']) await files.makeDirectory(`${content}/${name}`, 0o777);
  await directories.removeEmptyDirs(uid, signal);
  assert.deepEqual(reported, [`release ${content}/a ${content}/b`, `remove ${content}`]);
});

test('keeps the content of volumes other than emptyDir, and reports their paths', async () => {
  const { directories, store, remove } = createHarness();
  await directories.create(uid, signal);
  const share = `${pod}/volumes/kubernetes.io~nfs/share`;
  store.write(`${share}/deep/data`, 'precious');
  store.write(`${pod}/etc-hosts`, 'hosts');
  assert.deepEqual(await remove(), { kind: 'blocked', path: share, why: 'still has content of a volume' });
  assert.deepEqual(store.paths(), [`${share}/deep/data`, `${pod}/etc-hosts`]);
});

test('removes nothing from a pod directory while a file system is mounted below it, also if the path of the directory contains a symbolic link', async () => {
  for (const mount of [`${pod}/volumes/kubernetes.io~nfs/share`, '/data/real/pods/u1']) {
    const { store, remove } = createHarness(['/', '/root/pods/u10/volumes/x', mount]);
    store.write(`${pod}/volumes/kubernetes.io~empty-dir/cache/file`, 'content');
    assert.deepEqual(await remove(), { kind: 'blocked', path: mount, why: 'is mounted' });
    assert.equal(store.paths().length, 1);
  }
});

test('keeps the directory of a pod that was added again, and waits for a removal in progress before it creates the directory', async () => {
  const { directories, remove } = createHarness();
  await directories.create(uid, signal);
  assert.deepEqual(await remove(() => true), { kind: 'desired' });
  const removing = remove();
  const making = directories.create(uid, signal);
  assert.deepEqual(await removing, { kind: 'removed' });
  await making;
  assert.deepEqual(await directories.list(), [uid]);
});

test('lists only directories whose name is a valid UID', async () => {
  const { directories, files, store } = createHarness();
  await directories.create(uid, signal);
  await files.link('/precious', '/root/pods/u2');
  await files.makeDirectory('/root/pods/.hidden', 0o750);
  await files.makeDirectory('/root/pods/lost+found', 0o750);
  store.write('/root/pods/u3', 'a file');
  assert.deepEqual(await directories.list(), [uid]);
});

test('does not follow links below the pods directory', async () => {
  const disk = await mkdtemp(join(tmpdir(), 'pods-'));
  try {
    const files = realRuntimeFiles();
    const directories = new PodDirectories(disk, files, async () => []);
    const precious = join(disk, 'precious');
    const deep = join(precious, 'volumes/kubernetes.io~empty-dir/deep');
    const ways: readonly (readonly [link: string, target: string, below: string])[] = [
      ['u1', precious, ''],
      ['u2/volumes', join(precious, 'volumes'), 'volumes'],
      ['u3/volumes/kubernetes.io~nfs', join(precious, 'volumes'), 'volumes/kubernetes.io~nfs'],
      ['u4/volume-subpaths', precious, 'volume-subpaths'],
    ];
    for (const [link, target, below] of ways) {
      await files.makeDirectory(deep, 0o750);
      await files.link(target, join(disk, 'pods', link));
      const [name = ''] = link.split('/');
      await directories.removeEmptyDirs(podUid(name), new AbortController().signal);
      const removal = await directories.remove(podUid(name), () => false, signal);
      assert.deepEqual(
        [removal.kind, removal.kind === 'blocked' && removal.path],
        ['blocked', join(disk, 'pods', name, below)],
      );
      assert.equal(await files.kindAt(deep), 'directory', link);
    }
    assert.deepEqual(await directories.list(), ['u2', 'u3', 'u4']);
    // The link is removed, not its target.
    await files.link(precious, join(disk, 'pods/u5/volumes/kubernetes.io~empty-dir'));
    assert.deepEqual(await directories.remove(podUid('u5'), () => false, signal), { kind: 'removed' });
    assert.equal(await files.kindAt(deep), 'directory');
  } finally {
    await rm(disk, { recursive: true });
  }
});
