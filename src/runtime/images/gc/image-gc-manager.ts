import type { Container, CriClient, Image } from '../../../cri/index.ts';
import {
  type Clock,
  describeError,
  formatDurationMs,
  isKind,
  KubelingError,
  type Logger,
} from '../../../lib/index.ts';
import { fullImageName } from '../image-name.ts';
import type { ImageLeases } from './image-leases.ts';

export interface ImageGcPolicy {
  /** The disk usage in percent above which images are removed; 100 disables the removal. */
  readonly highPercent: number;
  /** The disk usage in percent down to which images are removed. */
  readonly lowPercent: number;
  /** The minimum age of an image before it is removed to free disk space. */
  readonly minAgeMs: number;
  /** How long an image may stay unused before it is removed; 0 for no limit. */
  readonly maxAgeMs: number;
  /** The names of images that are never removed. */
  readonly preserved?: readonly string[] | undefined;
}

export interface DiskSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

export interface ImageGcDeps {
  readonly cri: ImageUseCri & Pick<CriClient, 'listImages' | 'removeImage' | 'imageFsInfo'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly leases: ImageLeases;
  readonly policy: ImageGcPolicy;
  /** Returns the disk space of the file system at a path; undefined when unknown. */
  readonly diskSpace: (path: string) => Promise<DiskSpace | undefined>;
  /** Records a node event. */
  readonly warn: (reason: 'InvalidDiskCapacity' | 'FreeDiskSpaceFailed', message: string) => void;
  readonly removed: (reason: 'age' | 'space') => void;
}

/** The times on the monotonic clock at which an image was detected and last used. */
interface ImageRecord {
  readonly image: Image;
  readonly firstDetectedMs: number;
  readonly lastUsedMs: number;
}

const never = Number.NEGATIVE_INFINITY;

/**
 * Removes unused images: the least recently used ones when the disk is full, and those above the
 * maximum age. Calls are serialized. Images with a lease are kept.
 */
export class ImageGcManager {
  readonly #deps: ImageGcDeps;
  readonly #uses: ImagesInUse;
  readonly #beganMs: number;
  #records: ReadonlyMap<string, ImageRecord> = new Map();
  /** Resolves when the current collection has finished; never rejects. */
  #working: Promise<unknown> = Promise.resolve();

  constructor(deps: ImageGcDeps) {
    this.#deps = deps;
    this.#uses = new ImagesInUse(deps.cri);
    this.#beganMs = deps.clock.monotonicMs();
  }

  /** Whether the policy ever removes images. */
  get isEnabled(): boolean {
    const { highPercent, maxAgeMs } = this.#deps.policy;
    return highPercent < 100 || maxAgeMs > 0;
  }

  /** Updates the usage records of images from the runtime's lists of images and containers. */
  detect(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => void (await this.#unused(signal)));
  }

  /**
   * Removes images above the maximum age, then frees disk space down to the low threshold. Throws
   * IMAGE_GC.
   */
  collect(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => {
      const unused = await this.#unused(signal);
      const left = await this.#freeOld(unused, signal);
      await this.#freeForSpace(left, signal);
    });
  }

  /** Removes all unused images, for eviction. Throws IMAGE_GC when some cannot be removed. */
  deleteUnusedImages(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => {
      this.#deps.logger.info('Removing all unused images');
      await this.#free(await this.#unused(signal), Number.POSITIVE_INFINITY, signal);
    });
  }

  #serialize(work: () => Promise<void>): Promise<void> {
    const mine = this.#working.then(work);
    this.#working = mine.catch(() => {});
    return mine;
  }

  /** Returns the images that can be removed, in the order of their removal. */
  async #unused(signal: AbortSignal): Promise<readonly ImageRecord[]> {
    const { cri, clock } = this.#deps;
    const { images } = await cri.listImages({}, signal);
    const used = await this.#uses.find(signal);
    const kept = [...(this.#deps.policy.preserved ?? []), ...(await this.#uses.sandboxImages(signal))];
    const nowMs = clock.monotonicMs();
    const unused: ImageRecord[] = [];
    const records = new Map<string, ImageRecord>();
    for (const image of images) {
      const isUsed = isAmong(image, used);
      const before = this.#records.get(image.id);
      const lastUsedMs = isUsed ? nowMs : (before?.lastUsedMs ?? never);
      const record = { image, firstDetectedMs: before?.firstDetectedMs ?? nowMs, lastUsedMs };
      records.set(image.id, record);
      if (!isUsed && !image.pinned && !kept.some((name) => isNamed(image, name))) unused.push(record);
    }
    this.#records = records;
    return unused.sort(leastNeededFirst);
  }

  /**
   * Removes images above the maximum age and returns the remaining ones. Removes nothing until the
   * kubelet has run for the maximum age, because earlier use of the images is unknown.
   */
  async #freeOld(images: readonly ImageRecord[], signal: AbortSignal): Promise<readonly ImageRecord[]> {
    const { clock, policy } = this.#deps;
    const { maxAgeMs } = policy;
    const nowMs = clock.monotonicMs();
    if (maxAgeMs === 0 || nowMs - this.#beganMs <= maxAgeMs) return images;
    const failures: unknown[] = [];
    const left: ImageRecord[] = [];
    for (const record of images) {
      const isOld = nowMs - record.lastUsedMs > maxAgeMs;
      if (!isOld || !(await this.#remove(record, 'age', failures, signal))) left.push(record);
    }
    if (failures.length === 0) return left;
    const what = `wanted to free images older than ${formatDurationMs(maxAgeMs)}`;
    throw failed(`${what}, encountered errors in image deletion: ${listed(failures)}`);
  }

  async #freeForSpace(images: readonly ImageRecord[], signal: AbortSignal): Promise<void> {
    const { policy, warn, logger } = this.#deps;
    const { capacityBytes, availableBytes } = await this.#imageDisk(signal);
    if (capacityBytes === 0) {
      const message = 'invalid capacity 0 on image filesystem';
      warn('InvalidDiskCapacity', message);
      throw failed(message);
    }
    const usedPercent = 100 - Math.floor((availableBytes * 100) / capacityBytes);
    if (usedPercent < policy.highPercent) return;
    const required = Math.floor((capacityBytes * (100 - policy.lowPercent)) / 100) - availableBytes;
    logger.info('Image file system is above the high threshold, removing unused images', {
      usedPercent,
      wanted: required,
    });
    const freed = await this.#free(images, required, signal);
    if (freed >= required) return;
    const message =
      `Insufficient free disk space on the node's image filesystem (${usedPercent}% of ${sizeText(capacityBytes)} used). ` +
      `Failed to free sufficient space by deleting unused images (freed ${freed} bytes). ` +
      'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.';
    warn('FreeDiskSpaceFailed', message);
    throw failed(message);
  }

  async #imageDisk(signal: AbortSignal): Promise<DiskSpace> {
    const { cri, diskSpace } = this.#deps;
    const [first] = (await cri.imageFsInfo({}, signal)).imageFilesystems;
    const mountpoint = first?.fsId?.mountpoint ?? '';
    const space = mountpoint === '' ? undefined : await diskSpace(mountpoint).catch(() => undefined);
    if (space === undefined) return { capacityBytes: 0, availableBytes: 0 };
    return { ...space, availableBytes: Math.min(space.availableBytes, space.capacityBytes) };
  }

  /**
   * Removes images until enough space is freed; returns the number of freed bytes. Tries all
   * images, then throws when some could not be removed.
   */
  async #free(images: readonly ImageRecord[], required: number, signal: AbortSignal): Promise<number> {
    const { clock, policy } = this.#deps;
    const nowMs = clock.monotonicMs();
    const failures: unknown[] = [];
    let freed = 0;
    for (const record of images) {
      if (freed >= required) break;
      // An image that was detected recently is probably about to be used, so it is kept.
      if (nowMs - record.firstDetectedMs < policy.minAgeMs) continue;
      if (await this.#remove(record, 'space', failures, signal)) freed += Number(record.image.size);
    }
    if (failures.length === 0) return freed;
    throw failed(
      `wanted to free ${required} bytes, but freed ${freed} bytes space with errors in image deletion: ${listed(failures)}`,
    );
  }

  /**
   * Removes the image; returns whether it was removed. An image that came into use since the
   * listing is kept.
   */
  async #remove(
    { image }: ImageRecord,
    reason: 'age' | 'space',
    failures: unknown[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { leases, removed, logger } = this.#deps;
    try {
      const act = async () => {
        if (isAmong(image, await this.#uses.find(signal))) return 'used';
        logger.info('Removing image', { image: image.repoTags[0] ?? image.id, bytes: image.size, reason });
        await this.#deps.cri.removeImage({ image: { image: image.id } }, signal);
        return 'removed';
      };
      const outcome = await leases.remove(image.id, act, (reference) => isNamed(image, reference));
      if (outcome !== 'removed') return false;
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
      return false;
    }
    this.#records = new Map([...this.#records].filter(([id]) => id !== image.id));
    removed(reason);
    return true;
  }
}

function leastNeededFirst(one: ImageRecord, other: ImageRecord): number {
  if (one.lastUsedMs !== other.lastUsedMs) return one.lastUsedMs < other.lastUsedMs ? -1 : 1;
  if (one.firstDetectedMs !== other.firstDetectedMs)
    return one.firstDetectedMs < other.firstDetectedMs ? -1 : 1;
  return one.image.id < other.image.id ? -1 : 1;
}

function isNamed({ id, repoTags, repoDigests }: Image, name: string): boolean {
  const full = fullImageName(name);
  return id === name || [...repoTags, ...repoDigests].some((each) => each === name || each === full);
}

function failed(message: string): KubelingError {
  return new KubelingError('IMAGE_GC', message);
}

function listed(failures: readonly unknown[]): string {
  const texts = [...new Set(failures.map(describeError))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

const units = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1_024 ** power).toFixed(1)} ${units[power - 1]}`;
}

export type ImageUseCri = Pick<CriClient, 'listContainers' | 'containerStatus' | 'status'>;

/**
 * Finds the images from which listed containers, including dead ones, are created, or which they
 * mount.
 */
class ImagesInUse {
  readonly #cri: ImageUseCri;
  /** The mounted images by container ID; a container's mounts never change. */
  readonly #mounted = new Map<string, readonly string[]>();

  constructor(cri: ImageUseCri) {
    this.#cri = cri;
  }

  /** Returns the names and IDs of all used images, in every form that the runtime reports. */
  async find(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { containers } = await this.#cri.listContainers({}, signal);
    const listed = new Set(containers.map(({ id }) => id));
    for (const id of this.#mounted.keys()) if (!listed.has(id)) this.#mounted.delete(id);
    const used = new Set<string>();
    for (const container of containers) {
      used.add(ownImage(container));
      for (const image of await this.#imagesMountedBy(container.id, signal)) used.add(image);
    }
    used.delete('');
    return used;
  }

  /**
   * Returns the sandbox image from the runtime's status. Older runtimes do not pin this image,
   * although they cannot create sandboxes without it.
   */
  async sandboxImages(signal: AbortSignal): Promise<readonly string[]> {
    const { info } = await this.#cri.status({ verbose: true }, signal);
    try {
      const { sandboxImage } = JSON.parse(info['config'] ?? '{}') as { readonly sandboxImage?: unknown };
      return typeof sandboxImage === 'string' && sandboxImage !== '' ? [sandboxImage] : [];
    } catch {
      return [];
    }
  }

  async #imagesMountedBy(containerId: string, signal: AbortSignal): Promise<readonly string[]> {
    const known = this.#mounted.get(containerId);
    if (known !== undefined) return known;
    try {
      const { status } = await this.#cri.containerStatus({ containerId }, signal);
      const images = (status?.mounts ?? []).flatMap(({ image }) => image?.image ?? []);
      this.#mounted.set(containerId, images);
      return images;
    } catch (error) {
      if (isKind(error, 'NotFound')) return [];
      throw error;
    }
  }
}

function ownImage({ imageId, imageRef }: Container): string {
  return imageId === '' ? imageRef : imageId;
}

/** Whether one of the names refers to the image by its ID or digest. */
function isAmong({ id, repoDigests }: Image, names: ReadonlySet<string>): boolean {
  return names.has(id) || repoDigests.some((digest) => names.has(digest));
}
