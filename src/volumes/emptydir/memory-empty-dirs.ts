import type { Volume } from '../../kinds/index.ts';
import {
  type Clock,
  compareQuantities,
  formatQuantity,
  KeyedMutex,
  type Quantity,
  quantityOf,
  quantityValue,
  tryParseQuantity,
} from '../../lib/index.ts';
import type { Pod, PodUid, ResourceList } from '../../pods/index.ts';
import { hasPodLevelResources, initContainersOf, isHugePages, isPositive } from '../../pods/index.ts';
import { removeMounted } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { isMarked, markPrepared, memoryLimitOf } from '../manager/prepare-volume.ts';
import { type StorageObserver, timed } from '../manager/volume-metrics.ts';
import { usedVolumes } from '../manager/volume-paths.ts';
import { unusable } from '../projected/payload.ts';
import { endOf, firstNonDirectory, PodVolumePaths } from '../projected/payload-paths.ts';

export interface MemoryEmptyDirsDeps {
  /** Parent directory of the pod directories. */
  readonly podsDir: string;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  /** Returns the node's allocatable resources, whose memory limits each directory. */
  readonly allocatable: () => ResourceList;
  /** Observes durations of file operations; undefined to observe none. */
  readonly observe?: StorageObserver | undefined;
}

const directoryMode = 0o777;
const plugin = { name: 'kubernetes.io/empty-dir' };

/** Mounts memory-backed emptyDir volumes: tmpfs and hugetlbfs. */
export class MemoryEmptyDirs {
  readonly #deps: MemoryEmptyDirsDeps;
  readonly #lock = new KeyedMutex<PodUid>();

  constructor(deps: MemoryEmptyDirsDeps) {
    this.#deps = deps;
  }

  /**
   * Mounts the volume when a container uses it. Idempotent, also across processes: an existing
   * mount is kept. Rejects with VOLUME_UNUSABLE for an invalid medium.
   */
  async create(pod: Pod, { name, emptyDir }: Volume, signal: AbortSignal): Promise<void> {
    if (!usedVolumes(pod).has(name)) return;
    const medium = readMedium(emptyDir?.medium ?? '');
    const { uid } = pod.metadata;
    using _held = await this.#lock.acquire(uid, signal);
    const paths = new PodVolumePaths(this.#deps.podsDir, uid);
    const [directory, marker] = [paths.emptyDir(name), paths.emptyDirMarker(name)];
    const chain = [paths.pod, paths.volumes, paths.emptyDirs, directory];
    const foreign = await firstNonDirectory(this.#deps.files, chain);
    if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
    if (await this.#isMounted(pod, directory, medium)) {
      if (await isMarked(this.#deps.files, marker)) return;
    } else {
      // A marker without its mount, for example after a reboot, is not valid for a new mount.
      await this.#deps.files.removeTree(marker);
      await this.#mount(pod, directory, { medium, sizeLimit: emptyDir?.sizeLimit }, signal);
    }
    const group = pod.spec.securityContext?.fsGroup;
    const { clock, files, observe = () => {} } = this.#deps;
    const give = (to: number) => files.giveToGroup(directory, to, 'write');
    if (group !== undefined)
      await timed({ clock, observe }, 'volume_apply_access_control', [plugin], () => give(group));
    await markPrepared(this.#deps.files, marker);
  }

  /**
   * Unmounts the pod's volumes once none of its containers runs; the UID is enough. Idempotent.
   * Disk-backed directories are kept. Rejects with VOLUME_REMOVE, which names the paths still in
   * use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    const paths = new PodVolumePaths(this.#deps.podsDir, uid);
    const { files } = this.#deps;
    // Nothing is removed through a symbolic link.
    if ((await endOf(files, [paths.pod, paths.volumes, paths.emptyDirs])) !== 'ours') return;
    const volumes = (await files.names(paths.emptyDirs)).map((name) => ({
      directory: paths.emptyDir(name),
      marker: paths.emptyDirMarker(name),
    }));
    const kinds = await Promise.all(volumes.map(({ directory }) => files.mountAt(directory)));
    const mounted = volumes.filter(
      (_volume, index) => kinds[index] === 'memory' || kinds[index] === 'huge-pages',
    );
    await removeMounted(this.#deps, mounted, signal);
  }

  async #isMounted(pod: Pod, directory: string, medium: MemoryMedium): Promise<boolean> {
    const { files } = this.#deps;
    const mounted = await files.mountAt(directory);
    if (mounted === 'none') return false;
    if (mounted !== medium.kind) throw unusable(`${directory} is a mount point of something else`);
    if (medium.kind === 'huge-pages') {
      checkPageSize({ directory, pageBytes: await files.pageBytesAt(directory) }, medium, pod);
    }
    return true;
  }

  async #mount(
    pod: Pod,
    directory: string,
    { medium, sizeLimit }: { readonly medium: MemoryMedium; readonly sizeLimit: string | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const { files, allocatable } = this.#deps;
    if (medium.kind === 'memory') {
      const size = sizeInMemory(pod, sizeLimit, allocatable());
      await files.makeDirectory(directory, directoryMode);
      await files.mountMemory(directory, size, signal);
    } else {
      const pageSize = pageSizeFor(medium, pod);
      await files.makeDirectory(directory, directoryMode);
      await files.mountHugePages(directory, pageSize, signal);
    }
  }
}

/** Parsed medium of an emptyDir that is not disk-backed. */
export type MemoryMedium =
  | { readonly kind: 'memory' }
  /** Huge pages; without a page size in the medium, the one that the pod requests is used. */
  | { readonly kind: 'huge-pages'; readonly called: string; readonly pageSize: Quantity | undefined };

const anyHugePages = 'HugePages';
const resourcePrefix = 'hugepages-';
/** The Go kubelet's message for a quantity that cannot be parsed. */
const noQuantity =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function readMedium(medium: string): MemoryMedium {
  if (medium === 'Memory') return { kind: 'memory' };
  if (medium === anyHugePages) return { kind: 'huge-pages', called: medium, pageSize: undefined };
  const [prefix, size] = [`${anyHugePages}-`, medium.slice(anyHugePages.length + 1)];
  if (!medium.startsWith(prefix)) throw unusable(`unknown storage medium ${JSON.stringify(medium)}`);
  return { kind: 'huge-pages', called: medium, pageSize: readPageSize(size) };
}

/** Returns the page size to mount; a container or the pod must request huge pages of this size. */
function pageSizeFor(
  { called, pageSize }: Extract<MemoryMedium, { readonly kind: 'huge-pages' }>,
  pod: Pod,
): Quantity {
  const requested = requestedPageSizes(pod);
  const [found, ...rest] =
    pageSize === undefined ? requested : requested.filter((size) => isSame(size, pageSize)).slice(0, 1);
  if (found === undefined) {
    const message = 'hugePages storage requested, but there is no resource request for huge pages';
    throw unusable(`medium ${called}: ${message}`);
  }
  if (rest.some((other) => !isSame(found, other))) {
    throw unusable(`medium: ${called} can't be used if container requests multiple huge page sizes`);
  }
  return found;
}

/** Throws unless an existing mount has the required page size. */
function checkPageSize(
  mounted: { readonly directory: string; readonly pageBytes: bigint | undefined },
  { pageSize }: Extract<MemoryMedium, { readonly kind: 'huge-pages' }>,
  pod: Pod,
): void {
  if (pageSize === undefined) return;
  const { directory, pageBytes } = mounted;
  const where = `pod ${pod.metadata.uid}: mounted dir ${directory} pagesize`;
  if (pageBytes === undefined) throw unusable(`${where} is not determined`);
  const found = quantityOf(pageBytes, 'BinarySI');
  if (isSame(found, pageSize)) return;
  const sizes = `'${formatQuantity(found)}' and requested medium size '${formatQuantity(pageSize)}'`;
  throw unusable(`${where} ${sizes} differ`);
}

/**
 * Computes the size of a memory-backed emptyDir: the minimum of its sizeLimit, the pod's memory
 * limit and the allocatable memory.
 */
function sizeInMemory(
  pod: Pod,
  sizeLimit: string | undefined,
  allocatable: Parameters<typeof memoryLimitOf>[1],
): bigint | undefined {
  const room = memoryLimitOf(pod, allocatable);
  if (sizeLimit === undefined) return room;
  const limit = tryParseQuantity(sizeLimit);
  if (limit === undefined) throw unusable(noQuantity);
  if (!isPositive(limit)) return room;
  const bytes = quantityValue(limit);
  return room === undefined || bytes < room ? bytes : room;
}

function requestedPageSizes(pod: Pod): readonly Quantity[] {
  const wholes = hasPodLevelResources(pod) ? [pod.spec.resources] : [];
  const parts = [...pod.spec.containers, ...initContainersOf(pod)].map(({ resources }) => resources);
  const names = [...wholes, ...parts].flatMap((resources) => Object.keys(resources?.requests ?? {}));
  return names.filter(isHugePages).map((name) => readPageSize(name.slice(resourcePrefix.length)));
}

function readPageSize(text: string): Quantity {
  const size = tryParseQuantity(text);
  if (size === undefined) throw unusable(noQuantity);
  return size;
}

function isSame(a: Quantity, b: Quantity): boolean {
  return compareQuantities(a, b) === 0;
}
