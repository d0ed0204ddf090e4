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

function rig(mounts: readonly string[] = []) {
  const store = mapFileStore();
  const files = memoryRuntimeFiles(store);
  const directories = new PodDirectories('/root', files, async () => mounts);
  const remove = (isWanted = () => false) => directories.remove(uid, isWanted, signal);
  return { store, files, directories, remove };
}

test('everything of a pod goes, with what its empty directories held', async () => {
  const { directories, files, store, remove } = rig();
  await directories.make(uid, signal);
  store.write(`${pod}/etc-hosts`, 'hosts');
  store.write(`${pod}/volumes/kubernetes.io~empty-dir/cache/file`, 'content');
  await files.makeDirectory(`${pod}/volumes/kubernetes.io~nfs/share`, 0o750);
  assert.deepEqual(await remove(), { kind: 'removed' });
  assert.deepEqual(await directories.list(), []);
  assert.deepEqual(store.paths(), []);
});

test('the marker of an empty directory goes before it, and never through a link', async () => {
  const { files } = rig();
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

test('what empty directories were held to is let go before they are removed', async () => {
  const { files } = rig();
  const told: string[] = [];
  const directories = new PodDirectories('/root', files, async () => [], {
    removeTree: async (directory) => void told.push(`remove ${directory}`),
    release: async (held) => void told.push(`release ${held.join(' ')}`),
  });
  const content = `${pod}/volumes/kubernetes.io~empty-dir`;
  for (const name of ['a', 'b']) await files.makeDirectory(`${content}/${name}`, 0o777);
  await directories.removeEmptyDirs(uid, signal);
  assert.deepEqual(told, [`release ${content}/a ${content}/b`, `remove ${content}`]);
});

test('what any other volume holds stays, and is named', async () => {
  const { directories, store, remove } = rig();
  await directories.make(uid, signal);
  const share = `${pod}/volumes/kubernetes.io~nfs/share`;
  store.write(`${share}/deep/data`, 'precious');
  store.write(`${pod}/etc-hosts`, 'hosts');
  assert.deepEqual(await remove(), { kind: 'blocked', path: share, why: 'still has content of a volume' });
  assert.deepEqual(store.paths(), [`${share}/deep/data`, `${pod}/etc-hosts`]);
});

test('nothing is removed while something is mounted below, also where the directory lies behind a link', async () => {
  for (const mount of [`${pod}/volumes/kubernetes.io~nfs/share`, '/data/real/pods/u1']) {
    const { store, remove } = rig(['/', '/root/pods/u10/volumes/x', mount]);
    store.write(`${pod}/volumes/kubernetes.io~empty-dir/cache/file`, 'content');
    assert.deepEqual(await remove(), { kind: 'blocked', path: mount, why: 'is mounted' });
    assert.equal(store.paths().length, 1);
  }
});

test('a pod that came back meanwhile keeps its directory, and makes it after a removal has ended', async () => {
  const { directories, remove } = rig();
  await directories.make(uid, signal);
  assert.deepEqual(await remove(() => true), { kind: 'wanted' });
  const removing = remove();
  const making = directories.make(uid, signal);
  assert.deepEqual(await removing, { kind: 'removed' });
  await making;
  assert.deepEqual(await directories.list(), [uid]);
});

test('only directories whose name can be a UID are those of pods', async () => {
  const { directories, files, store } = rig();
  await directories.make(uid, signal);
  await files.link('/precious', '/root/pods/u2');
  await files.makeDirectory('/root/pods/.hidden', 0o750);
  await files.makeDirectory('/root/pods/lost+found', 0o750);
  store.write('/root/pods/u3', 'a file');
  assert.deepEqual(await directories.list(), [uid]);
});

test('no link is followed, wherever below the pods it is', async () => {
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
    // What is content of the pod itself goes as the link it is.
    await files.link(precious, join(disk, 'pods/u5/volumes/kubernetes.io~empty-dir'));
    assert.deepEqual(await directories.remove(podUid('u5'), () => false, signal), { kind: 'removed' });
    assert.equal(await files.kindAt(deep), 'directory');
  } finally {
    await rm(disk, { recursive: true });
  }
});
