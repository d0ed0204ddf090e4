import { posix } from 'node:path';
import { KubelingError, type Quantity, quantityValue } from '../../src/lib/index.ts';
import type {
  GroupAccess,
  MountKind,
  VolumeFileKind,
  VolumeFiles,
  VolumeSpace,
} from '../../src/volumes/index.ts';

export type MemoryEntry =
  | { readonly kind: 'directory'; readonly mode: number; readonly owner: number; readonly group: number }
  | {
      readonly kind: 'file';
      readonly mode: number;
      readonly owner: number;
      readonly group: number;
      readonly data: Buffer;
    }
  | { readonly kind: 'link'; readonly target: string; readonly owner: number; readonly group: number }
  /** A block device; the name is unique. */
  | {
      readonly kind: 'device';
      readonly device: string;
      readonly mode: number;
      readonly owner: number;
      readonly group: number;
    };

interface MemoryMount {
  readonly directory: string;
  readonly kind: MountKind;
  readonly sizeBytes: bigint | undefined;
  readonly pageBytes?: bigint;
  /** The disk, block device or server that is mounted. */
  readonly origin?: string;
  /** What is mounted, and the mount options. */
  readonly source?: string;
  readonly options?: readonly string[];
  /** The entries hidden by the mount, including the mount point itself. */
  readonly hidden: ReadonlyMap<string, MemoryEntry>;
}

const mostLinks = 40;
const stickyForAll = 0o1777;
const ownerWrites = 0o755;

/** The files and mounts of a machine that exists only in memory. */
export class MemoryVolumeFiles implements VolumeFiles {
  readonly #entries = new Map<string, MemoryEntry>();
  #mounts: readonly MemoryMount[] = [];
  /** Mount points that are in use, so that unmounting fails. */
  readonly busy = new Set<string>();

  /** Returns the paths of all entries, sorted. */
  paths(): readonly string[] {
    return [...this.#entries.keys()].sort();
  }

  entry(path: string): MemoryEntry | undefined {
    return this.#entries.get(path);
  }

  mounts(): readonly Omit<MemoryMount, 'hidden' | 'pageBytes'>[] {
    return this.#mounts.map(({ hidden: _hidden, pageBytes: _pages, ...mount }) => mount);
  }

  /** Returns the bind mounts, sorted by mount point. */
  binds(): readonly { readonly directory: string; readonly source: string; readonly options: string }[] {
    return this.#mounts.flatMap(({ directory, source, options = [] }) =>
      source === undefined ? [] : [{ directory, source, options: options.join(',') }],
    );
  }

  /**
   * Returns the text of a file as a container reads it, with links followed; undefined if it does
   * not exist.
   */
  text(path: string): string | undefined {
    const found = this.#entries.get(this.#resolve(path));
    return found?.kind === 'file' ? found.data.toString('utf8') : undefined;
  }

  /** Creates any entry at any path, as another process of the machine may. */
  put(path: string, entry: MemoryEntry): void {
    this.#entries.set(path, entry);
  }

  /** Mounts a file system at the directory, as another program of the machine may. */
  mountForeign(directory: string): void {
    this.#cover({ directory, kind: 'other', sizeBytes: undefined }, directoryOf(ownerWrites));
  }

  /** Bind-mounts a directory. */
  mountFrom(origin: string, directory: string): void {
    if (this.#entries.get(directory)?.kind !== 'directory') throw refused(directory, 'it is not a directory');
    this.#cover({ directory, kind: 'other', sizeBytes: undefined, origin }, directoryOf(ownerWrites));
  }

  /** Maps a block device to a file. */
  showDevice(device: string, file: string): void {
    if (this.#entries.get(file)?.kind !== 'file') throw refused(file, 'it is no file');
    const shown = { kind: 'device', device, mode: 0o660, owner: 0, group: 0 } as const;
    this.#cover({ directory: file, kind: 'other', sizeBytes: undefined, origin: device }, shown);
  }

  async kindAt(path: string): Promise<VolumeFileKind | undefined> {
    const kind = this.#entries.get(path)?.kind;
    return kind === 'device' ? 'other' : kind;
  }

  async names(directory: string): Promise<readonly string[]> {
    return this.#below(directory)
      .map((path) => path.slice(directory.length + 1))
      .filter((path) => !path.includes('/'))
      .sort();
  }

  async readLink(path: string): Promise<string | undefined> {
    const found = this.#entries.get(path);
    return found?.kind === 'link' ? found.target : undefined;
  }

  async readFile(path: string): Promise<Buffer | undefined> {
    const found = this.#entries.get(path);
    return found?.kind === 'file' ? found.data : undefined;
  }

  async makeDirectory(path: string, mode: number): Promise<void> {
    this.#makeParents(path);
    const found = this.#entries.get(path);
    if (found !== undefined && found.kind !== 'directory') throw refused(path, 'it is not a directory');
    const kept = (found?.mode ?? 0) & 0o7000;
    this.#entries.set(path, { owner: 0, group: 0, ...found, kind: 'directory', mode: kept | mode });
  }

  async writeFile(
    path: string,
    data: Buffer,
    { mode, owner = 0 }: { readonly mode: number; readonly owner?: number | undefined },
  ): Promise<void> {
    if (this.#entries.has(path)) throw refused(path, 'it exists already');
    this.#makeParents(path);
    this.#entries.set(path, { kind: 'file', mode, owner, group: 0, data: Buffer.from(data) });
  }

  async replaceFile(path: string, data: Buffer, mode: number): Promise<void> {
    await this.unlink(path);
    await this.writeFile(path, data, { mode });
  }

  async link(target: string, path: string, owner = 0): Promise<void> {
    if (this.#entries.has(path)) throw refused(path, 'it exists already');
    this.#entries.set(path, { kind: 'link', target, owner, group: 0 });
  }

  async rename(from: string, to: string): Promise<void> {
    const found = this.#entries.get(from);
    if (found === undefined) throw refused(from, 'it is not there');
    this.#entries.delete(from);
    this.#entries.set(to, found);
  }

  async unlink(path: string): Promise<void> {
    if (this.#entries.get(path)?.kind === 'directory') throw refused(path, 'it is a directory');
    this.#refuseMounted(path);
    this.#entries.delete(path);
  }

  async giveToGroup(directory: string, group: number, access: GroupAccess = 'read'): Promise<void> {
    const bits = { write: 0o660, read: 0o440, 'as-is': undefined }[access];
    for (const path of [...this.#below(directory), directory]) {
      const found = this.#entries.get(path);
      if (found === undefined) continue;
      const more = bits === undefined ? 0 : bits | (found.kind === 'directory' ? 0o2110 : 0);
      const given =
        found.kind === 'link' ? { ...found, group } : { ...found, group, mode: found.mode | more };
      this.#entries.set(path, given);
    }
  }

  async removeTree(directory: string): Promise<void> {
    const inTheWay = this.#mounts.find(
      ({ directory: at }) => at === directory || at.startsWith(`${directory}/`),
    );
    if (inTheWay !== undefined) {
      const message = `cannot delete directory ${inTheWay.directory}: it is a mount point`;
      throw new KubelingError('VOLUME_REMOVE', message);
    }
    for (const path of this.#below(directory)) this.#entries.delete(path);
    this.#entries.delete(directory);
  }

  async mountAt(directory: string): Promise<MountKind> {
    return this.#mounts.findLast(({ directory: at }) => at === directory)?.kind ?? 'none';
  }

  async mountsInside(directory: string): Promise<readonly string[]> {
    return this.#mounts.map(({ directory: at }) => at).filter((at) => at.startsWith(`${directory}/`));
  }

  async unmountInside(directory: string): Promise<string | undefined> {
    for (const at of (await this.mountsInside(directory)).toReversed())
      if ((await this.unmount(at)) === 'busy') return at;
    return undefined;
  }

  async mountMemory(directory: string, sizeBytes: bigint | undefined): Promise<void> {
    if (this.#entries.get(directory)?.kind !== 'directory') throw refused(directory, 'it is not a directory');
    this.#cover({ directory, kind: 'memory', sizeBytes }, directoryOf(stickyForAll));
  }

  async mountHugePages(directory: string, pageSize: Quantity): Promise<void> {
    if (this.#entries.get(directory)?.kind !== 'directory') throw refused(directory, 'it is not a directory');
    const pageBytes = quantityValue(pageSize);
    const shown = directoryOf(ownerWrites);
    this.#cover({ directory, kind: 'huge-pages', sizeBytes: undefined, pageBytes }, shown);
  }

  async pageBytesAt(directory: string): Promise<bigint | undefined> {
    return this.#mounts.findLast(({ directory: at }) => at === directory)?.pageBytes;
  }

  async behind(path: string) {
    const at = this.#resolve(path);
    const { kind } = this.#entries.get(at) ?? {};
    if (kind === undefined) return undefined;
    if (kind === 'device') return { path: at, kind: 'block-device' as const };
    return { path: at, kind: kind === 'directory' ? kind : ('other' as const) };
  }

  async spaceAt(): Promise<VolumeSpace> {
    const [capacityBytes, inodes] = [2 ** 20, 1_024];
    const inodesUsed = this.#entries.size;
    const bytes = { capacityBytes, availableBytes: capacityBytes, usedBytes: 0 };
    return { ...bytes, inodes, inodesFree: inodes - inodesUsed, inodesUsed };
  }

  async ownerOf(directory: string): Promise<{ readonly group: number; readonly mode: number }> {
    const found = this.#entries.get(directory);
    if (found === undefined || found.kind === 'link') throw refused(directory, 'it is not there');
    return { group: found.group, mode: found.mode };
  }

  async bind(source: string, directory: string, options: readonly string[]): Promise<void> {
    for (const path of [source, directory])
      if (this.#entries.get(path)?.kind !== 'directory') throw refused(path, 'it is not a directory');
    const content = this.#below(source).map(
      (path) => [path.slice(source.length), this.#entries.get(path)] as const,
    );
    const origin = this.#mounts.findLast(({ directory: at }) => at === source)?.origin;
    const mount = { directory, kind: 'other', sizeBytes: undefined, source, options } as const;
    this.#cover(origin === undefined ? mount : { ...mount, origin }, directoryOf(ownerWrites));
    for (const [path, entry] of content)
      if (entry !== undefined) this.#entries.set(`${directory}${path}`, entry);
  }

  async remount(directory: string, options: readonly string[]): Promise<void> {
    const last = this.#mounts.findLast(({ directory: at }) => at === directory);
    if (last === undefined) throw refused(directory, 'nothing is mounted there');
    this.#mounts = this.#mounts.map((mount) => (mount === last ? { ...mount, options } : mount));
  }

  unbind(directory: string): Promise<'done' | 'busy'> {
    return this.unmount(directory);
  }

  async removeEmptyDirectory(directory: string): Promise<'gone' | 'not-empty'> {
    if (this.#below(directory).length > 0) return 'not-empty';
    this.#refuseMounted(directory);
    this.#entries.delete(directory);
    return 'gone';
  }

  async unmount(directory: string): Promise<'done' | 'busy'> {
    const last = this.#mounts.findLast(({ directory: at }) => at === directory);
    if (last === undefined) return 'done';
    const isBelow = this.#mounts.some(({ directory: at }) => at.startsWith(`${directory}/`));
    if (isBelow || this.busy.has(directory)) return 'busy';
    for (const path of this.#below(directory)) this.#entries.delete(path);
    for (const [path, entry] of last.hidden) this.#entries.set(path, entry);
    this.#mounts = this.#mounts.filter((mount) => mount !== last);
    return 'done';
  }

  #refuseMounted(path: string): void {
    if (this.#mounts.some(({ directory }) => directory === path)) throw refused(path, 'it is a mount point');
  }

  #cover(mount: Omit<MemoryMount, 'hidden'>, shown: MemoryEntry): void {
    const { directory } = mount;
    const hidden = new Map<string, MemoryEntry>();
    for (const path of [directory, ...this.#below(directory)]) {
      const entry = this.#entries.get(path);
      if (entry !== undefined) hidden.set(path, entry);
      this.#entries.delete(path);
    }
    this.#entries.set(directory, shown);
    this.#mounts = [...this.#mounts, { ...mount, hidden }];
  }

  #below(directory: string): readonly string[] {
    return [...this.#entries.keys()].filter((path) => path.startsWith(`${directory}/`));
  }

  #makeParents(path: string): void {
    const parent = posix.dirname(path);
    if (parent === path || this.#entries.has(parent)) return;
    this.#makeParents(parent);
    this.#entries.set(parent, directoryOf(0o755));
  }

  #resolve(path: string): string {
    let at = posix.normalize(path);
    for (let left = mostLinks; left > 0; left--) {
      const steps = at.split('/').map((_step, index, all) => all.slice(0, index + 1).join('/'));
      const link = steps.find((step) => this.#entries.get(step)?.kind === 'link');
      const entry = link === undefined ? undefined : this.#entries.get(link);
      if (link === undefined || entry?.kind !== 'link') return at;
      at = posix.join(posix.resolve(posix.dirname(link), entry.target), at.slice(link.length));
    }
    return at;
  }
}

function directoryOf(mode: number): MemoryEntry {
  return { kind: 'directory', mode, owner: 0, group: 0 };
}

function refused(path: string, why: string): KubelingError {
  return new KubelingError('FILE_WRITE', `Cannot write ${path}: ${why}`);
}
