import { constants, lstatSync, realpathSync, type Stats } from 'node:fs';
import { lstat, mkdir, open, opendir, readFile, realpath, rmdir, stat, statfs } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  absoluteArgument,
  type Clock,
  type CommandResult,
  describeError,
  directoryFlags,
  directoryNoFollowFlags,
  errnoOf,
  formatQuantity,
  hostUnresponsiveMounts,
  ignoreMissing,
  KubelingError,
  type MountSyscalls,
  mountArguments,
  mountIdOf,
  mountPointError,
  mountSyscalls,
  openHandle,
  type Quantity,
  readMountTable,
  removeTree,
  rethrowUnlessMissing,
  runCommand,
  spaceAt,
  systemRandom,
  type UnresponsiveMounts,
  umountArguments,
  writeFileAtomic,
} from '../../lib/index.ts';
import { checkedMountOptions, commandFailure } from '../manager/mount-options.ts';
import { walkForGroup } from '../ownership/group-walk.ts';
import { runGroupWalk } from '../ownership/run-group-walk.ts';
import type { WalkProgress } from '../ownership/volume-ownership.ts';
import { callModeFor, callsToChange, fileCallsFor, isQuickPath, volumeTreeCalls } from './quick-files.ts';
import type { GroupAccess, MountKind, VolumeFileKind, VolumeFiles, VolumeSpace } from './volume-files.ts';

/** The kernel's numbers of the file system types that the kubelet mounts. */
const mountKinds: ReadonlyMap<number, MountKind> = new Map([
  [0x01021994, 'memory'],
  [0x958458f6, 'huge-pages'],
]);
const directoryMode = 0o755;
const innerDirectoryMode = 0o777;
/** Mode bits that are added to files, by the access that their group gets. */
const groupBits: Readonly<Record<GroupAccess, number | undefined>> = {
  read: 0o440,
  write: 0o660,
  'as-is': undefined,
};
const mountDeadlineMs = 30_000;

/** File and mount operations of this machine. */
export class HostVolumeFiles implements VolumeFiles {
  readonly #clock: Clock;
  /**
   * Whether tmpfs without swap was rejected; older kernels and user namespaces do not support it.
   */
  #noswap: 'untried' | 'refused' = 'untried';
  readonly #calls: MountSyscalls | undefined;

  readonly #unresponsive: Pick<UnresponsiveMounts, 'check' | 'firstBelow' | 'mountsOf'>;

  /** `calls` performs mounts by system calls; without it each mount runs a program. */
  constructor(
    clock: Clock,
    calls: MountSyscalls | undefined = mountSyscalls(),
    unresponsive: Pick<UnresponsiveMounts, 'check' | 'firstBelow' | 'mountsOf'> = hostUnresponsiveMounts(
      clock,
      systemRandom(),
    ),
  ) {
    this.#clock = clock;
    this.#calls = calls;
    this.#unresponsive = unresponsive;
  }

  async kindAt(path: string): Promise<VolumeFileKind | undefined> {
    return await this.#reading(path, async () => kindOf(await fileCallsFor(path).lstat(path)), undefined);
  }

  async names(directory: string): Promise<readonly string[]> {
    return await this.#reading(
      directory,
      async () => (await fileCallsFor(directory).readdir(directory)).sort(),
      [],
    );
  }

  async readLink(path: string): Promise<string | undefined> {
    return await this.#reading(path, async () => await fileCallsFor(path).readlink(path), undefined);
  }

  async readFile(path: string): Promise<Buffer | undefined> {
    return await this.#reading(path, () => readRegular(path), undefined);
  }

  async makeDirectory(path: string, mode: number): Promise<void> {
    const calls = callsToChange(path);
    await this.#writing(path, async () => {
      await inDirectory(path, directoryMode, async () => {
        try {
          await calls.mkdir(path, mode);
        } catch (error) {
          if (errnoOf(error) !== 'EEXIST') throw error;
        }
      });
      const facts = await fileCallsFor(path).lstat(path);
      if (!facts.isDirectory()) throw new Error('the path is not a directory');
      // The umask may have cleared permission bits; setuid, setgid and sticky bits of an existing
      // directory are kept.
      if ((facts.mode & 0o777) !== mode) await calls.chmod(path, (facts.mode & 0o7000) | mode);
    });
  }

  async writeFile(
    path: string,
    data: Buffer,
    { mode, owner }: { readonly mode: number; readonly owner?: number | undefined },
  ): Promise<void> {
    await this.#writing(path, () =>
      inDirectory(path, innerDirectoryMode, async () => {
        await callsToChange(path).create(path, { data, mode, owner });
      }),
    );
  }

  async replaceFile(path: string, data: Buffer, mode: number): Promise<void> {
    await writeFileAtomic(path, data, { mode });
  }

  async link(target: string, path: string, owner?: number): Promise<void> {
    const calls = callsToChange(path);
    await this.#writing(path, async () => {
      await calls.symlink(target, path);
      if (owner !== undefined) await calls.lchown(path, owner, -1);
    });
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#writing(to, async () => await callsToChange(to).rename(from, to));
  }

  async unlink(path: string): Promise<void> {
    await this.#writing(path, () => ignoreMissing(() => callsToChange(path).unlink(path)), 'remove');
  }

  async giveToGroup(
    directory: string,
    group: number,
    access: GroupAccess = 'read',
    progress?: WalkProgress,
  ): Promise<void> {
    const gift = { group, bits: groupBits[access] };
    await this.#writing(directory, async () => {
      // Sets the group in a separate process only when the volume has content, because the number
      // of its files is unlimited.
      const isLarge = access === 'write' && !(await isEmpty(directory));
      const walk = isLarge
        ? await runGroupWalk(this.#clock, directory, gift, (count) => progress?.processed(count))
        : await walkForGroup(directory, gift);
      progress?.processed(walk.visited);
      if (walk.unchanged === 0) return;
      if (progress === undefined) throw new Error(walk.because);
      progress.unchanged(walk.unchanged, walk.because ?? '');
    });
  }

  async removeTree(directory: string): Promise<void> {
    const act = async () => {
      const blocking = await this.#unresponsive.firstBelow(await resolvedPath(directory));
      if (blocking !== undefined) throw mountPointError(`directory ${blocking}`);
      await removeTree(directory, volumeTreeCalls);
    };
    await writing(directory, () => ignoreMissing(act), 'remove');
  }

  async mountAt(directory: string): Promise<MountKind> {
    // Reads the mount table instead of the path, whose file system may not respond.
    const check = async () => ((await this.#isFromElsewhere(directory)) ? 'other' : await mountAt(directory));
    return await reading(directory, check, 'none');
  }

  async mountMemory(
    directory: string,
    sizeBytes: bigint | undefined,
    signal: AbortSignal,
    inodes?: number,
  ): Promise<void> {
    const size = [
      ...(sizeBytes === undefined ? [] : [`size=${sizeBytes}`]),
      ...(inodes === undefined ? [] : [`nr_inodes=${inodes}`]),
    ];
    const wish = this.#noswap === 'refused' ? [] : ['noswap'];
    const mount = (options: readonly string[]) => this.#mount('tmpfs', 'tmpfs', directory, options, signal);
    const first = await mount([...size, ...wish]);
    if (first === undefined) return;
    const second = wish.length === 0 ? first : await mount(size);
    if (second !== undefined) throw new KubelingError('VOLUME_UNUSABLE', `mount failed: ${second}`);
    this.#noswap = 'refused';
  }

  async mountHugePages(directory: string, pageSize: Quantity, signal: AbortSignal): Promise<void> {
    const options = [`pagesize=${formatQuantity(pageSize)}`];
    const problem = await this.#mount('hugetlbfs', 'nodev', directory, options, signal);
    if (problem !== undefined) throw new KubelingError('VOLUME_UNUSABLE', `mount failed: ${problem}`);
  }

  async pageBytesAt(directory: string): Promise<bigint | undefined> {
    const check = async () => {
      await using handle = await open(directory, directoryNoFollowFlags);
      const { type, bsize } = await statfs(`/proc/self/fd/${handle.fd}`, { bigint: true });
      return mountKinds.get(Number(type)) === 'huge-pages' ? bsize : undefined;
    };
    return await this.#reading(directory, check, undefined);
  }

  async unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    // Only file systems in memory are unmounted by a direct call, so the call cannot block.
    if (this.#calls?.unmount(directory) === 'done') return 'done';
    return await this.#unmount(directory, signal);
  }

  /** Unmounts by a program, which may block without blocking this process. */
  async #unmount(directory: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    // Uses the path in the mount table, because resolving the path would query the file system.
    const resolved = await reading(directory, () => resolvedPath(directory), directory);
    const result = await this.#run('umount', umountArguments(['--no-canonicalize'], resolved), signal);
    const failure = commandFailure(result);
    if (failure === undefined || failure.includes('not mounted')) return 'done';
    if (failure.includes('busy')) return 'busy';
    throw new KubelingError('VOLUME_REMOVE', `unmount failed: ${failure}`);
  }

  async behind(path: string) {
    const check = async () => {
      const facts = await stat(path);
      const found = facts.isBlockDevice() ? 'block-device' : 'other';
      const kind = facts.isDirectory() ? ('directory' as const) : (found as 'block-device' | 'other');
      return { path: await realpath(path), kind };
    };
    return await this.#reading(path, check, undefined);
  }

  async spaceAt(directory: string, signal: AbortSignal): Promise<VolumeSpace> {
    // Local file systems are read directly; other file systems may not respond, so a program reads
    // them.
    if ((await this.#unresponsive.mountsOf(directory, signal)) === 'own')
      return await reading(directory, async () => spaceAt(directory), undefined).then(
        (space) => space ?? Promise.reject(missing(directory)),
      );
    const args = ['-f', '-c', '%S %b %f %a %c %d', '--', absoluteArgument('stat', directory)];
    const result = await this.#run('stat', args, signal);
    const failure = commandFailure(result);
    const numbers = result.stdout.trim().split(' ').map(Number);
    if (failure !== undefined || numbers.length !== 6 || numbers.some(Number.isNaN))
      throw new KubelingError('FILE_READ', `Cannot read ${directory}: ${failure ?? result.stdout}`);
    const [size = 0, blocks = 0, free = 0, available = 0, inodes = 0, inodesFree = 0] = numbers;
    return {
      capacityBytes: blocks * size,
      availableBytes: available * size,
      usedBytes: (blocks - free) * size,
      inodes,
      inodesFree,
      inodesUsed: inodes - inodesFree,
    };
  }

  async ownerOf(directory: string): Promise<{ readonly group: number; readonly mode: number }> {
    const check = async () => {
      const { gid, mode } = await lstat(directory);
      return { group: gid, mode: mode & 0o7777 };
    };
    const found = await this.#reading(directory, check, undefined);
    if (found === undefined) throw missing(directory);
    return found;
  }

  /** Mounts in two steps, because the kernel ignores all other options of a bind mount. */
  async bind(
    source: string,
    directory: string,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const checked = checkedMountOptions(options);
    const from = absoluteArgument('mount', source);
    const args = mountArguments({ options: ['bind'], source: from, target: directory });
    const failure = commandFailure(await this.#run('mount', args, signal));
    if (failure !== undefined) throw new KubelingError('VOLUME_UNUSABLE', `mount failed: ${failure}`);
    if (checked.length === 0) return;
    try {
      await this.remount(directory, checked, signal);
    } catch (error) {
      // The clean-up has a separate signal, because an abort must not leave the mount without its
      // options.
      await this.#run('umount', umountArguments([], directory), new AbortController().signal);
      throw error;
    }
  }

  async remount(directory: string, options: readonly string[], signal: AbortSignal): Promise<void> {
    const all = ['remount', 'bind', ...checkedMountOptions(options)];
    const args = mountArguments({ options: all, target: directory });
    const failure = commandFailure(await this.#run('mount', args, signal));
    if (failure !== undefined) throw new KubelingError('VOLUME_UNUSABLE', `mount failed: ${failure}`);
  }

  async mountsInside(directory: string): Promise<readonly string[]> {
    return await this.#reading(directory, () => mountsInside(directory), []);
  }

  async unmountInside(directory: string, signal: AbortSignal): Promise<string | undefined> {
    return await this.#unmountAll(await this.mountsInside(directory), signal);
  }

  /**
   * Unmounts in reverse order. The mounts are made private first, so that other mount points of the
   * same file systems stay mounted.
   */
  async #unmountAll(points: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    for (const point of points) {
      const isAround = points.some((other) => other.startsWith(`${point}/`));
      const args = mountArguments({ flags: ['--make-rprivate'], target: point });
      if (isAround) await this.#run('mount', args, signal);
    }
    for (const point of points.toReversed())
      if ((await this.#unmount(point, signal)) === 'busy') return point;
    return undefined;
  }

  async unbind(directory: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    const busy = await this.#unmountAll([directory, ...(await mountsInside(directory))], signal);
    return busy === undefined ? 'done' : 'busy';
  }

  async removeEmptyDirectory(directory: string): Promise<'gone' | 'not-empty'> {
    const act = async () => {
      // Most paths do not exist, which can be checked without the thread pool.
      if (isQuickPath(directory) && lstatSync(directory, { throwIfNoEntry: false }) === undefined)
        return 'gone' as const;
      await rmdir(directory).catch(rethrowUnlessMissing);
      return 'gone' as const;
    };
    return await this.#writing(
      directory,
      () =>
        act().catch((error) => {
          if (!['ENOTEMPTY', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error;
          return 'not-empty' as const;
        }),
      'remove',
    );
  }

  /**
   * Whether the file system mounted at the path may become unresponsive, for example a network file
   * system.
   */
  async #isFromElsewhere(directory: string): Promise<boolean> {
    const resolved = await resolvedPath(directory);
    return (await this.#unresponsive.firstBelow(resolved)) === resolved;
  }

  /** Reads a path unless its file system is known to be unresponsive. */
  async #reading<T>(path: string, act: () => Promise<T>, absent: T): Promise<T> {
    await this.#unresponsive.check(path);
    return await reading(path, act, absent);
  }

  async #writing<T>(path: string, act: () => Promise<T>, doing?: 'write' | 'remove'): Promise<T> {
    await this.#unresponsive.check(path);
    return await writing(path, act, doing);
  }

  /** Runs mount(8); returns its error message, or undefined on success. */
  async #mount(
    type: 'tmpfs' | 'hugetlbfs',
    device: string,
    directory: string,
    options: readonly string[],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const kind = { type, device, options: options.join(',') };
    if (this.#calls?.mount(kind, directory) === 'done') return undefined;
    const args = mountArguments({ type, options, source: device, target: directory });
    return commandFailure(await this.#run('mount', args, signal));
  }

  async #run(file: string, args: readonly string[], signal: AbortSignal): Promise<CommandResult> {
    // The locale is fixed, because the output of programs is parsed.
    const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
    return await runCommand({ file, args, env, clock: this.#clock, deadlineMs: mountDeadlineMs }, signal);
  }
}

/** Whether the directory is empty; only its first entry is read. */
async function isEmpty(directory: string): Promise<boolean> {
  await using opened = await opendir(directory);
  return (await opened.read()) === null;
}

function kindOf(facts: Stats): VolumeFileKind {
  if (facts.isDirectory()) return 'directory';
  if (facts.isSymbolicLink()) return 'link';
  return facts.isFile() ? 'file' : 'other';
}

async function readRegular(path: string): Promise<Buffer | undefined> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  return (await file.stat()).isFile() ? await file.readFile() : undefined;
}

async function mountAt(directory: string): Promise<MountKind> {
  const outer = dirname(directory);
  await using handle = await openHandle(directory, directoryNoFollowFlags, callModeFor(directory));
  await using above = await openHandle(outer, directoryFlags, callModeFor(outer));
  if (mountIdOf(handle) === mountIdOf(above)) return 'none';
  return mountKinds.get((await statfs(`/proc/self/fd/${handle.fd}`)).type) ?? 'other';
}

/** Resolves all symbolic links in the parent directories; the directory itself is not accessed. */
async function resolvedPath(directory: string): Promise<string> {
  const above = dirname(directory);
  return join(isQuickPath(above) ? realpathSync.native(above) : await realpath(above), basename(directory));
}

/**
 * Lists mount points inside a directory in mount order. The kernel reports them with symbolic links
 * resolved.
 */
async function mountsInside(directory: string): Promise<readonly string[]> {
  const resolved = await resolvedPath(directory);
  const mounts = await readMountTable((path) => readFile(path, 'utf8'));
  return mounts.map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(`${resolved}/`));
}

/** Runs `act`, and creates the parent directory only after a failure, because it usually exists. */
async function inDirectory(path: string, mode: number, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    await mkdir(dirname(path), { recursive: true, mode });
    await act();
  }
}

async function reading<T>(path: string, act: () => Promise<T>, absent: T): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EINVAL', 'ELOOP'].includes(errnoOf(error) ?? '')) return absent;
    throw new KubelingError('FILE_READ', `Cannot read ${path}: ${describeError(error)}`, { cause: error });
  }
}

async function writing<T>(
  path: string,
  act: () => Promise<T>,
  doing: 'write' | 'remove' = 'write',
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof KubelingError) throw error;
    throw new KubelingError('FILE_WRITE', `Cannot ${doing} ${path}: ${describeError(error)}`, {
      cause: error,
    });
  }
}

function missing(path: string): KubelingError {
  return new KubelingError('FILE_READ', `Cannot read ${path}: it is not there`);
}
