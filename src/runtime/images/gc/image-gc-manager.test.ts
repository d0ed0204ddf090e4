import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import type { Container, Image } from '../../../cri/index.ts';
import { collectLogs, KubelingError } from '../../../lib/index.ts';
import { type DiskSpace, type ImageGcDeps, ImageGcManager, type ImageGcPolicy } from './image-gc-manager.ts';
import { ImageLeases } from './image-leases.ts';

const never = new AbortController().signal;
const minute = 60_000;
const thresholds: ImageGcPolicy = { highPercent: 85, lowPercent: 80, minAgeMs: 2 * minute, maxAgeMs: 0 };

type Use = { readonly image: string; readonly mounts?: string };

/** A runtime with images of 10 bytes each on a disk of 100 bytes. */
class Rig {
  readonly clock = new VirtualClock();
  readonly leases = new ImageLeases();
  readonly told: string[] = [];
  readonly removed: string[] = [];
  images: readonly Partial<Image>[] = [];
  containers = new Map<string, Use>();
  space: DiskSpace | undefined = { capacityBytes: 100, availableBytes: 90 };
  refused = new Set<string>();
  statusAsked = 0;
  sandboxImage = '';
  beforeRemoval: () => void = () => {};
  readonly manager: ImageGcManager;

  constructor(policy: Partial<ImageGcPolicy> = {}) {
    this.manager = new ImageGcManager({
      cri: this.#cri(),
      clock: this.clock,
      logger: collectLogs(this.clock).logger,
      leases: this.leases,
      policy: { ...thresholds, ...policy },
      diskSpace: async () => this.space,
      warn: (reason, message) => this.told.push(`${reason}: ${message}`),
      removed: (reason) => this.told.push(reason),
    });
  }

  have(...ids: readonly string[]): void {
    this.images = ids.map((id) => ({
      id,
      repoTags: [`docker.io/library/${id}:1`],
      repoDigests: [],
      size: 10n,
    }));
  }

  use(...ids: readonly string[]): void {
    this.containers = new Map(ids.map((image, index) => [`c${index}-${image}`, { image }]));
  }

  /** Sets the used share of the disk. */
  fill(percent: number): void {
    this.space = { capacityBytes: 100, availableBytes: 100 - percent };
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  #cri(): ImageGcDeps['cri'] {
    const cri = {
      listImages: async () => ({ images: this.images }),
      listContainers: async () => {
        const containers = [...this.containers].map(([id, { image }]) => ({
          id,
          imageId: '',
          imageRef: image,
        }));
        return { containers: containers as unknown as readonly Container[] };
      },
      containerStatus: async ({ containerId }: { containerId: string }) => {
        this.statusAsked++;
        const { mounts } = this.containers.get(containerId) ?? {};
        return { status: { mounts: mounts === undefined ? [{}] : [{ image: { image: mounts } }] } };
      },
      status: async () => ({ info: { config: JSON.stringify({ sandboxImage: this.sandboxImage }) } }),
      imageFsInfo: async () => ({ imageFilesystems: [{ fsId: { mountpoint: '/images' } }] }),
      removeImage: async ({ image }: { image: { image: string } }) => {
        this.beforeRemoval();
        if (this.refused.has(image.image))
          throw new KubelingError('CRI_FAILED', `the fake runtime cannot remove ${image.image}`);
        this.removed.push(image.image);
        this.images = this.images.filter(({ id }) => id !== image.image);
        return {};
      },
    };
    return cri as unknown as ImageGcDeps['cri'];
  }
}

test('removes the least recently used images of a full disk, down to the low threshold', async () => {
  const harness = new Rig();
  harness.have('a', 'b', 'c', 'd');
  harness.use('b');
  await harness.manager.detect(never);
  await harness.pass(5 * minute);
  harness.use('c');
  await harness.manager.detect(never);
  await harness.pass(5 * minute);
  harness.use('d');
  harness.fill(84);
  await harness.manager.collect(never);
  assert.deepEqual(harness.removed, []);
  harness.fill(95);
  await harness.manager.collect(never);
  assert.deepEqual(
    [harness.removed, harness.told],
    [
      ['a', 'b'],
      ['space', 'space'],
    ],
  );
});

test('keeps images that are new, pinned, mounted, or used for sandboxes', async () => {
  const harness = new Rig({ preserved: ['docker.io/library/kept:1'] });
  harness.have('old', 'pinned', 'mounted', 'pause', 'kept');
  harness.images = harness.images.map((image) =>
    image.id === 'pinned' ? { ...image, pinned: true } : image,
  );
  harness.containers.set('c', { image: 'gone', mounts: 'mounted' });
  harness.sandboxImage = 'pause:1';
  await harness.manager.detect(never);
  await harness.pass(2 * minute);
  const { images } = harness;
  harness.have('new');
  harness.images = [...images, ...harness.images];
  await harness.manager.deleteUnusedImages(never);
  assert.deepEqual(harness.removed, ['old']);
  await harness.pass(2 * minute);
  await harness.manager.deleteUnusedImages(never);
  assert.deepEqual(harness.removed, ['old', 'new']);
  assert.equal(harness.statusAsked, 1, 'the mounts of a container are read once');
});

test('reports insufficient freed space and an unknown disk size', async () => {
  const harness = new Rig();
  harness.have('a', 'b');
  harness.use('b');
  await harness.manager.detect(never);
  await harness.pass(2 * minute);
  harness.fill(99);
  const message =
    "Insufficient free disk space on the node's image filesystem (99% of 100 B used). Failed to free sufficient space by deleting unused images (freed 10 bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
  await assert.rejects(harness.manager.collect(never), { code: 'IMAGE_GC', message });
  assert.deepEqual(harness.told, ['space', `FreeDiskSpaceFailed: ${message}`]);
  harness.space = undefined;
  await assert.rejects(harness.manager.collect(never), /invalid capacity 0 on image filesystem/);
  assert.equal(harness.told.at(-1), 'InvalidDiskCapacity: invalid capacity 0 on image filesystem');
});

test('removes the remaining images after a failed removal, and reports the failure', async () => {
  const harness = new Rig();
  harness.have('a', 'b');
  harness.refused.add('a');
  await harness.manager.detect(never);
  await harness.pass(2 * minute);
  await assert.rejects(harness.manager.deleteUnusedImages(never), /cannot remove a/);
  assert.deepEqual(harness.removed, ['b']);
});

test('removes images above the maximum age, once the kubelet has run for that long', async () => {
  const harness = new Rig({ maxAgeMs: 10 * minute });
  harness.have('never', 'once', 'used');
  harness.use('once', 'used');
  await harness.manager.collect(never);
  await harness.pass(5 * minute);
  harness.use('used');
  await harness.manager.collect(never);
  await harness.pass(5 * minute);
  await harness.manager.collect(never);
  assert.deepEqual(harness.removed, [], 'previous use is unknown');
  await harness.pass(1);
  await harness.manager.collect(never);
  assert.deepEqual(
    [harness.removed, harness.told],
    [
      ['never', 'once'],
      ['age', 'age'],
    ],
  );
});

test('keeps an image with a lease, and an image that a container starts to use during the collection', async () => {
  const harness = new Rig();
  harness.have('a', 'b', 'c');
  await harness.manager.detect(never);
  await harness.pass(2 * minute);
  const lease = await harness.leases.hold('b', harness.leases.mark(), never);
  harness.beforeRemoval = () => harness.use('c');
  await harness.manager.deleteUnusedImages(never);
  assert.deepEqual(harness.removed, ['a']);
  lease?.[Symbol.dispose]();
  await harness.manager.deleteUnusedImages(never);
  assert.deepEqual(harness.removed, ['a', 'b']);
});

test('removes no images when neither threshold is set', () => {
  assert.equal(new Rig({ highPercent: 100 }).manager.isEnabled, false);
  assert.equal(new Rig({ highPercent: 100, maxAgeMs: 1 }).manager.isEnabled, true);
});
