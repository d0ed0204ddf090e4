import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { buildImage, imageArchitecture, pauseImageName } from '../../src/containerd/index.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import { ApiNode, stays } from './api-node.ts';
import { skipReason } from './containerd-fixture.ts';
import {
  below,
  evicting,
  evictions,
  filling,
  getsShort,
  isEvicted,
  isRunning,
  mebi,
  nodeEvents,
  onDisk,
  recovers,
  scratch,
} from './eviction-fixture.ts';

const { signal } = new AbortController();
const imageGc = { highPercent: 100, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 };
const thresholdMet = 'EvictionThresholdMet: Attempting to reclaim';

async function isPresent(node: ApiNode, image: string): Promise<boolean> {
  return (await node.inner.runtime.cri.imageStatus({ image: { image } }, signal)).image !== undefined;
}

/** An image nobody uses: on the disk once as it came and once unpacked. */
async function bringImage(node: ApiNode, name: string, bytes: number): Promise<string> {
  const data = randomBytes(bytes);
  const files = [{ path: 'padding', kind: 'file', mode: 0o644, data }] as const;
  const architecture = imageArchitecture(process.arch);
  const image = `localhost/${name}:1`;
  const store = await node.inner.runtime.containerd.images();
  const archive = buildImage({ name: image, architecture, files, command: ['none'], env: {} });
  await store.importArchive(archive, signal);
  await node.until(`${image} to be known`, '', async () => (await isPresent(node, image)) || undefined);
  return image;
}

/** Waits until the runtime has just counted what containers have written, which it does now and then. */
async function layersCounted(node: ApiNode): Promise<void> {
  const look = async () => {
    const { stats } = await node.inner.runtime.cri.listContainerStats({}, signal);
    return stats.map(({ writableLayer }) => writableLayer?.timestamp).join();
  };
  const before = await look();
  await node.until('layers to be counted', '', async () => (await look()) !== before || undefined);
}

/** With a real containerd on small disks; side by side, as they wait for most of the time. */
describe('a node with a small disk', { skip: skipReason(), timeout: 300_000, concurrency: true }, () => {
  it('removes images nobody uses first, and evicts nobody when that is enough', async () => {
    using disk = new MountedDisk();
    await using node = await ApiNode.open({
      folder: disk.path,
      settings: { imageGc, ...evicting(below('nodefs.available', 24 * mebi)) },
    });
    const unused = await bringImage(node, 'unused', 8 * mebi);
    node.add('saved', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 14), ...scratch } },
    });
    const { containerID } = await node.running('saved');
    await getsShort(node, 'DiskPressure', 'saved');
    await node.until(
      'the image to be gone',
      'saved',
      async () => !(await isPresent(node, unused)) || undefined,
    );
    await recovers(node, 'saved');
    assert.deepEqual(evictions(node, 'saved'), []);
    assert.ok(isRunning(node.status('saved')));
    assert.equal(node.container('saved')?.containerID, containerID);
    assert.ok(nodeEvents(node).includes(`${thresholdMet} ephemeral-storage`));
    for (const image of [node.inner.runtime.image, pauseImageName])
      assert.ok(await isPresent(node, image), image);
  });

  it('evicts who has filled the disk of images when removing those is not enough', async () => {
    using disk = new MountedDisk();
    using own = new MountedDisk();
    await using node = await ApiNode.open({
      folder: disk.path,
      settings: {
        imageGc,
        ...evicting(below('imagefs.available', 24 * mebi)),
        rootDir: join(own.path, 'kubelet'),
      },
    });
    const unused = await bringImage(node, 'unused', 4 * mebi);
    node.add('modest', { containers: { main: { script: filling('/x', 2) } } });
    node.add('elsewhere', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 30), ...scratch } },
    });
    const waiting = 'while [ ! -e /shared/go ]; do sleep 0.05; done';
    node.add('filler', { containers: { main: { script: `${waiting}; ${filling('/x', 32)}` } } });
    for (const name of ['modest', 'elsewhere', 'filler']) await node.running(name);
    await layersCounted(node);
    await writeFile(node.inner.path('shared', 'filler', 'go'), '');
    await getsShort(node, 'DiskPressure', 'filler');
    const { message = '' } = await node.is('filler', 'evicted', isEvicted);
    assert.match(
      message,
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 24Mi, available: \d+\w*\. Container main was using \d+\w*, request is 0, has larger consumption of ephemeral-storage\. $/,
    );
    assert.ok(!(await isPresent(node, unused)));
    await recovers(node, 'filler');
    assert.deepEqual(evictions(node, 'filler', 'modest', 'elsewhere'), [`Evicted: ${message}`]);
    for (const name of ['modest', 'elsewhere']) assert.ok(isRunning(node.status(name)), name);
  });

  it('evicts who has made too many files', async () => {
    using disk = new MountedDisk({ inodes: 2_048 });
    await using node = await ApiNode.open({
      settings: { ...evicting(below('nodefs.inodesFree', 600)), rootDir: join(disk.path, 'kubelet') },
    });
    const making = (count: number) =>
      `i=0; while [ $i -lt ${count} ]; do : >/scratch/$i; i=$((i+1)); done; ${stays}`;
    node.add('few', { ...onDisk(), containers: { main: { script: making(50), ...scratch } } });
    await node.running('few');
    node.add('many', { ...onDisk(), containers: { main: { script: making(1_600), ...scratch } } });
    await getsShort(node, 'DiskPressure', 'many');
    const { message = '' } = await node.is('many', 'evicted', isEvicted);
    assert.match(
      message,
      /^The node was low on resource: inodes\. Threshold quantity: 600, available: \d+\. $/,
    );
    assert.ok(nodeEvents(node).includes(`${thresholdMet} inodes`));
    await recovers(node, 'many');
    assert.deepEqual(evictions(node, 'few', 'many'), [`Evicted: ${message}`]);
    assert.ok(isRunning(node.status('few')));
  });
});
