import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { buildImage, imageArchitecture, pauseImageName } from '../../src/containerd/index.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import { ApiNode, runsUntilSigterm } from './api-node.ts';
import { skipReason } from './containerd-fixture.ts';
import {
  comesUnderPressure,
  evicting,
  evictions,
  filling,
  hardThreshold,
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

/**
 * Imports an unused image, which uses disk space twice: for its imported layers and for their
 * unpacked files.
 */
async function bringImage(node: ApiNode, name: string, bytes: number): Promise<string> {
  const data = randomBytes(bytes);
  const files = [{ path: 'padding', kind: 'file', mode: 0o644, data }] as const;
  const architecture = imageArchitecture(process.arch);
  const image = `localhost/${name}:1`;
  const store = await node.inner.runtime.containerd.images();
  const archive = buildImage({ name: image, architecture, files, command: ['none'], env: {} });
  await store.importArchive(archive, signal);
  await node.until(`${image} to be listed`, '', async () => (await isPresent(node, image)) || undefined);
  return image;
}

/** Waits until the runtime has just measured the writable layers, which it does periodically. */
async function layersCounted(node: ApiNode): Promise<void> {
  const look = async () => {
    const { stats } = await node.inner.runtime.cri.listContainerStats({}, signal);
    return stats.map(({ writableLayer }) => writableLayer?.timestamp).join();
  };
  const before = await look();
  await node.until('writable layers to be measured', '', async () => (await look()) !== before || undefined);
}

/** A script that waits until the file exists. */
const waits = 'while [ ! -e /shared/go ]; do sleep 0.05; done';
const making = (folder: string, count: number) =>
  `i=0; while [ $i -lt ${count} ]; do : >${folder}/$i; i=$((i+1)); done; ${runsUntilSigterm}`;

const lowOnStorage = (threshold: string) =>
  new RegExp(
    String.raw`^The node was low on resource: ephemeral-storage\. Threshold quantity: ${threshold}, available: \d+\w*\. ` +
      String.raw`Container main was using \d+\w*, request is 0, has larger consumption of ephemeral-storage\. $`,
  );
const lowOnInodes = (threshold: number) =>
  new RegExp(
    String.raw`^The node was low on resource: inodes\. Threshold quantity: ${threshold}, available: \d+\. $`,
  );

/**
 * The tests use a real containerd on small disks; they run concurrently, because they wait most of
 * the time.
 */
describe('a node with a small disk', { skip: skipReason(), timeout: 300_000, concurrency: true }, () => {
  it('removes unused images first and evicts no pod when that frees enough', async () => {
    using disk = new MountedDisk();
    await using node = await ApiNode.open({
      folder: disk.path,
      settings: { imageGc, ...evicting(hardThreshold('nodefs.available', 24 * mebi)) },
      countsEverySeconds: 1,
    });
    // The image is small enough that its import causes no disk pressure.
    const unused = await bringImage(node, 'unused', 5 * mebi);
    node.add('saved', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 17), ...scratch } },
    });
    const { containerID } = await node.running('saved');
    await comesUnderPressure(node, 'DiskPressure', 'saved');
    await node.until(
      'the image to be removed',
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

  it('evicts the pod that filled the image disk when removing images does not free enough', async () => {
    using disk = new MountedDisk({ inodes: 4_096 });
    using own = new MountedDisk();
    await using node = await ApiNode.open({
      folder: disk.path,
      settings: {
        imageGc,
        ...evicting(
          hardThreshold('imagefs.available', 24 * mebi),
          hardThreshold('imagefs.inodesFree', 1_200),
        ),
        rootDir: join(own.path, 'kubelet'),
      },
      countsEverySeconds: 1,
    });
    const unused = await bringImage(node, 'unused', 4 * mebi);
    node.add('modest', { containers: { main: { script: filling('/x', 2) } } });
    node.add('elsewhere', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 30), ...scratch } },
    });
    node.add('filler', { containers: { main: { script: `${waits}; ${filling('/x', 32)}` } } });
    node.add('maker', { containers: { main: { script: `${waits}; ${making('', 2_600)}` } } });
    for (const name of ['modest', 'elsewhere', 'filler', 'maker']) await node.running(name);
    await layersCounted(node);
    await writeFile(node.inner.path('shared', 'filler', 'go'), '');
    await comesUnderPressure(node, 'DiskPressure', 'filler');
    const { message = '' } = await node.is('filler', 'evicted', isEvicted);
    assert.match(message, lowOnStorage('24Mi'));
    assert.ok(!(await isPresent(node, unused)));
    await recovers(node, 'filler');
    await writeFile(node.inner.path('shared', 'maker', 'go'), '');
    await comesUnderPressure(node, 'DiskPressure', 'maker');
    const { message: ofFiles = '' } = await node.is('maker', 'evicted', isEvicted);
    assert.match(ofFiles, lowOnInodes(1_200));
    await recovers(node, 'maker');
    assert.deepEqual(evictions(node, 'filler', 'maker', 'modest', 'elsewhere'), [
      `Evicted: ${message}`,
      `Evicted: ${ofFiles}`,
    ]);
    for (const name of ['modest', 'elsewhere']) assert.ok(isRunning(node.status(name)), name);
  });

  it('evicts a pod when a separate container disk is full, and removes no image', async () => {
    using disk = new MountedDisk();
    using own = new MountedDisk();
    using layers = new MountedDisk({ inodes: 1_024 });
    await using node = await ApiNode.open({
      folder: disk.path,
      settings: {
        imageGc,
        ...evicting(hardThreshold('nodefs.available', 12 * mebi), hardThreshold('nodefs.inodesFree', 300)),
        rootDir: join(own.path, 'kubelet'),
      },
      countsEverySeconds: 1,
      // Reports a separate disk for containers, as other runtimes do; the containerd of the test
      // stores images and containers on the same disk.
      criOverrides: (cri) => ({
        imageFsInfo: async (request, inner) => {
          const reported = await cri.imageFsInfo(request, inner);
          const [images] = reported.imageFilesystems;
          assert.ok(images);
          return { ...reported, containerFilesystems: [{ ...images, fsId: { mountpoint: layers.path } }] };
        },
      }),
    });
    const unused = await bringImage(node, 'unused', 4 * mebi);
    node.add('large', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 20), ...scratch } },
    });
    node.add('many', { ...onDisk(), containers: { main: { script: making('/scratch', 50), ...scratch } } });
    node.add('modest', { containers: { main: { script: filling('/x', 2) } } });
    for (const name of ['large', 'many', 'modest']) await node.running(name);
    await layersCounted(node);
    await writeFile(join(layers.path, 'large'), randomBytes(48 * mebi));
    await comesUnderPressure(node, 'DiskPressure', 'large');
    const { message = '' } = await node.is('large', 'evicted', isEvicted);
    assert.match(message, lowOnStorage('12Mi'));
    await rm(join(layers.path, 'large'));
    await recovers(node, 'large');
    for (let count = 0; count < 800; count++) await writeFile(join(layers.path, String(count)), '');
    await comesUnderPressure(node, 'DiskPressure', 'many');
    const { message: ofFiles = '' } = await node.is('many', 'evicted', isEvicted);
    assert.match(ofFiles, lowOnInodes(300));
    for (let count = 0; count < 800; count++) await rm(join(layers.path, String(count)));
    await recovers(node, 'many');
    assert.deepEqual(evictions(node, 'large', 'many', 'modest'), [
      `Evicted: ${message}`,
      `Evicted: ${ofFiles}`,
    ]);
    assert.ok(isRunning(node.status('modest')));
    assert.ok(await isPresent(node, unused));
  });

  it('evicts the pod that has created too many files', async () => {
    using disk = new MountedDisk({ inodes: 2_048 });
    await using node = await ApiNode.open({
      settings: { ...evicting(hardThreshold('nodefs.inodesFree', 600)), rootDir: join(disk.path, 'kubelet') },
    });
    node.add('few', { ...onDisk(), containers: { main: { script: making('/scratch', 50), ...scratch } } });
    await node.running('few');
    node.add('many', {
      ...onDisk(),
      containers: { main: { script: making('/scratch', 1_600), ...scratch } },
    });
    await comesUnderPressure(node, 'DiskPressure', 'many');
    const { message = '' } = await node.is('many', 'evicted', isEvicted);
    assert.match(message, lowOnInodes(600));
    assert.ok(nodeEvents(node).includes(`${thresholdMet} inodes`));
    await recovers(node, 'many');
    assert.deepEqual(evictions(node, 'few', 'many'), [`Evicted: ${message}`]);
    assert.ok(isRunning(node.status('few')));
  });
});
