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

  /** Used bytes of the disk. */
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
        if (this.refused.has(image.image)) throw new KubelingError('CRI_FAILED', `${image.image} stays`);
        this.removed.push(image.image);
        this.images = this.images.filter(({ id }) => id !== image.image);
        return {};
      },
    };
    return cri as unknown as ImageGcDeps['cri'];
  }
}

test('removes the least recently used images of a full disk, down to the low threshold', async () => {
  const rig = new Rig();
  rig.have('a', 'b', 'c', 'd');
  rig.use('b');
  await rig.manager.detect(never);
  await rig.pass(5 * minute);
  rig.use('c');
  await rig.manager.detect(never);
  await rig.pass(5 * minute);
  rig.use('d');
  rig.fill(84);
  await rig.manager.collect(never);
  assert.deepEqual(rig.removed, []);
  rig.fill(95);
  await rig.manager.collect(never);
  assert.deepEqual(
    [rig.removed, rig.told],
    [
      ['a', 'b'],
      ['space', 'space'],
    ],
  );
});

test('keeps images that are new, pinned, mounted, or used for sandboxes', async () => {
  const rig = new Rig({ preserved: ['docker.io/library/kept:1'] });
  rig.have('old', 'pinned', 'mounted', 'pause', 'kept');
  rig.images = rig.images.map((image) => (image.id === 'pinned' ? { ...image, pinned: true } : image));
  rig.containers.set('c', { image: 'gone', mounts: 'mounted' });
  rig.sandboxImage = 'pause:1';
  await rig.manager.detect(never);
  await rig.pass(2 * minute);
  const { images } = rig;
  rig.have('new');
  rig.images = [...images, ...rig.images];
  await rig.manager.deleteUnusedImages(never);
  assert.deepEqual(rig.removed, ['old']);
  await rig.pass(2 * minute);
  await rig.manager.deleteUnusedImages(never);
  assert.deepEqual(rig.removed, ['old', 'new']);
  assert.equal(rig.statusAsked, 1, 'the mounts of a container are read once');
});

test('reports insufficient freed space and an unknown disk size', async () => {
  const rig = new Rig();
  rig.have('a', 'b');
  rig.use('b');
  await rig.manager.detect(never);
  await rig.pass(2 * minute);
  rig.fill(99);
  const message =
    "Insufficient free disk space on the node's image filesystem (99% of 100 B used). Failed to free sufficient space by deleting unused images (freed 10 bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
  await assert.rejects(rig.manager.collect(never), { code: 'IMAGE_GC', message });
  assert.deepEqual(rig.told, ['space', `FreeDiskSpaceFailed: ${message}`]);
  rig.space = undefined;
  await assert.rejects(rig.manager.collect(never), /invalid capacity 0 on image filesystem/);
  assert.equal(rig.told.at(-1), 'InvalidDiskCapacity: invalid capacity 0 on image filesystem');
});

test('continues after a failed removal', async () => {
  const rig = new Rig();
  rig.have('a', 'b');
  rig.refused.add('a');
  await rig.manager.detect(never);
  await rig.pass(2 * minute);
  await assert.rejects(rig.manager.deleteUnusedImages(never), /a stays/);
  assert.deepEqual(rig.removed, ['b']);
});

test('removes images above the maximum age, once the kubelet has run for that long', async () => {
  const rig = new Rig({ maxAgeMs: 10 * minute });
  rig.have('never', 'once', 'used');
  rig.use('once', 'used');
  await rig.manager.collect(never);
  await rig.pass(5 * minute);
  rig.use('used');
  await rig.manager.collect(never);
  await rig.pass(5 * minute);
  await rig.manager.collect(never);
  assert.deepEqual(rig.removed, [], 'previous use is unknown');
  await rig.pass(1);
  await rig.manager.collect(never);
  assert.deepEqual(
    [rig.removed, rig.told],
    [
      ['never', 'once'],
      ['age', 'age'],
    ],
  );
});

test('keeps an image with a lease, and one that came into use meanwhile', async () => {
  const rig = new Rig();
  rig.have('a', 'b', 'c');
  await rig.manager.detect(never);
  await rig.pass(2 * minute);
  const lease = await rig.leases.hold('b', rig.leases.mark(), never);
  rig.beforeRemoval = () => rig.use('c');
  await rig.manager.deleteUnusedImages(never);
  assert.deepEqual(rig.removed, ['a']);
  lease?.[Symbol.dispose]();
  await rig.manager.deleteUnusedImages(never);
  assert.deepEqual(rig.removed, ['a', 'b']);
});

test('is disabled when neither threshold is set', () => {
  assert.equal(new Rig({ highPercent: 100 }).manager.isEnabled, false);
  assert.equal(new Rig({ highPercent: 100, maxAgeMs: 1 }).manager.isEnabled, true);
});
