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
  /** The directory that contains the pod directories. */
  readonly podsDir: string;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  /** The allocatable memory of the node, which limits each directory. */
  readonly allocatable: () => ResourceList;
  /** Durations are not observed if undefined. */
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
   * Mounts the volume if a container uses it. Idempotent, also across processes: an existing mount
   * is kept. Rejects with VOLUME_UNUSABLE for an invalid medium.
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
    if (foreign !== undefined) throw unusable(`${foreign} is no directory`);
    if (await this.#isMounted(pod, directory, medium)) {
      if (await isMarked(this.#deps.files, marker)) return;
    } else {
      // A marker that outlived its mount, as after a reboot, is not valid for a new mount.
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
   * Call once no container of the pod runs; also for pods of which only the UID is known.
   * Idempotent. Disk-backed directories are kept. Rejects with VOLUME_REMOVE that names the paths
   * still in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    const paths = new PodVolumePaths(this.#deps.podsDir, uid);
    const { files } = this.#deps;
    // The target of a symbolic link is not removed.
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

/** The medium of an emptyDir that is not disk-backed. */
export type MemoryMedium =
  | { readonly kind: 'memory' }
  /** Without a page size in the medium, the page size requested by the pod is used. */
  | { readonly kind: 'huge-pages'; readonly called: string; readonly pageSize: Quantity | undefined };

const anyHugePages = 'HugePages';
const resourcePrefix = 'hugepages-';
/** The upstream message for a quantity that cannot be parsed. */
const noQuantity =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function readMedium(medium: string): MemoryMedium {
  if (medium === 'Memory') return { kind: 'memory' };
  if (medium === anyHugePages) return { kind: 'huge-pages', called: medium, pageSize: undefined };
  const [prefix, size] = [`${anyHugePages}-`, medium.slice(anyHugePages.length + 1)];
  if (!medium.startsWith(prefix)) throw unusable(`unknown storage medium ${JSON.stringify(medium)}`);
  return { kind: 'huge-pages', called: medium, pageSize: readPageSize(size) };
}

/** Returns the page size to mount; a container or the pod must request huge pages of that size. */
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

/** An existing mount is accepted only if it has the requested page size. */
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
 * Computes the size of a memory-backed emptyDir: its sizeLimit applies only if it is the minimum.
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
