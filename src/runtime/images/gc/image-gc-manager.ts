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
  /** Of the disk in use, from which on images are removed; 100 for never. */
  readonly highPercent: number;
  /** Down to which. */
  readonly lowPercent: number;
  /** For how long an image must have been known before it is removed for want of space. */
  readonly minAgeMs: number;
  /** For how long an image may have been unused; 0 for ever. */
  readonly maxAgeMs: number;
  /** Names of images that stay in any case; none unless given. */
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
  /** Of the file system at a place; undefined when nobody knows. */
  readonly diskSpace: (path: string) => Promise<DiskSpace | undefined>;
  /** Told to users of the node. */
  readonly warn: (reason: 'InvalidDiskCapacity' | 'FreeDiskSpaceFailed', message: string) => void;
  readonly removed: (reason: 'age' | 'space') => void;
}

/** What is known of an image; times are monotonic. */
interface ImageRecord {
  readonly image: Image;
  readonly firstDetectedMs: number;
  readonly lastUsedMs: number;
}

const never = Number.NEGATIVE_INFINITY;

/**
 * Removes images nobody uses: when the disk is full, those that were not used for longest first, and those that were not
 * used for too long. One call at a time; others wait. An image that a container is about to be made of is left alone.
 */
export class ImageGcManager {
  readonly #deps: ImageGcDeps;
  readonly #uses: ImagesInUse;
  readonly #beganMs: number;
  #records: ReadonlyMap<string, ImageRecord> = new Map();
  /** Settles when nobody is at work; never rejects. */
  #working: Promise<unknown> = Promise.resolve();

  constructor(deps: ImageGcDeps) {
    this.#deps = deps;
    this.#uses = new ImagesInUse(deps.cri);
    this.#beganMs = deps.clock.monotonicMs();
  }

  /** Whether `collect` would ever remove anything. */
  get isEnabled(): boolean {
    const { highPercent, maxAgeMs } = this.#deps.policy;
    return highPercent < 100 || maxAgeMs > 0;
  }

  /** Looks which images there are and which are used. */
  detect(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => void (await this.#unused(signal)));
  }

  /** Removes what is too old and, when the disk is too full, what is needed to have room. Throws IMAGE_GC. */
  collect(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => {
      const unused = await this.#unused(signal);
      const left = await this.#freeOld(unused, signal);
      await this.#freeForSpace(left, signal);
    });
  }

  /** Removes all images nobody uses, for whoever is short of disk. Throws IMAGE_GC. */
  deleteUnusedImages(signal: AbortSignal): Promise<void> {
    return this.#serialize(async () => {
      this.#deps.logger.info('Removing all images nobody uses');
      await this.#free(await this.#unused(signal), Number.POSITIVE_INFINITY, signal);
    });
  }

  #serialize(work: () => Promise<void>): Promise<void> {
    const mine = this.#working.then(work);
    this.#working = mine.catch(() => {});
    return mine;
  }

  /** Those that may be removed, in the order they should be. */
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

  /** Answers those that are left. Before it has run for as long itself, nobody knows what was used when. */
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
    const wanted = Math.floor((capacityBytes * (100 - policy.lowPercent)) / 100) - availableBytes;
    logger.info('The disk of images is too full: removing images nobody uses', { usedPercent, wanted });
    const freed = await this.#free(images, wanted, signal);
    if (freed >= wanted) return;
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

  /** Answers how many bytes that brought. Throws after all were tried when some could not be removed. */
  async #free(images: readonly ImageRecord[], wanted: number, signal: AbortSignal): Promise<number> {
    const { clock, policy } = this.#deps;
    const nowMs = clock.monotonicMs();
    const failures: unknown[] = [];
    let freed = 0;
    for (const record of images) {
      if (freed >= wanted) break;
      // One that has just come is about to be used.
      if (nowMs - record.firstDetectedMs < policy.minAgeMs) continue;
      if (await this.#remove(record, 'space', failures, signal)) freed += Number(record.image.size);
    }
    if (failures.length === 0) return freed;
    throw failed(
      `wanted to free ${wanted} bytes, but freed ${freed} bytes space with errors in image deletion: ${listed(failures)}`,
    );
  }

  /** Answers whether it is gone. What came to be used since it was looked at stays. */
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
        logger.info('Removing an image', { image: image.repoTags[0] ?? image.id, bytes: image.size, reason });
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

/** Which images containers are made of or mount: all containers the runtime lists, dead ones too. */
export class ImagesInUse {
  readonly #cri: ImageUseCri;
  /** By container: what it mounts never changes. */
  readonly #mounted = new Map<string, readonly string[]>();

  constructor(cri: ImageUseCri) {
    this.#cri = cri;
  }

  /** Names and ids of images in any form the runtime gives them. */
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

  /** That of the sandboxes, where the runtime tells: older ones do not pin it, and cannot do without. */
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

/** Whether one of these names is of the image. */
export function isAmong({ id, repoDigests }: Image, names: ReadonlySet<string>): boolean {
  return names.has(id) || repoDigests.some((digest) => names.has(digest));
}
