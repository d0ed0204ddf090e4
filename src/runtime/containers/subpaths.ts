import { constants, lstatSync } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rmdir,
  unlink,
} from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import {
  type Clock,
  errnoOf,
  hostUnresponsiveMounts,
  isKind,
  KubelingError,
  mountArguments,
  readMountTable,
  runChecked,
  systemRandom,
  type UnresponsiveMounts,
  umountArguments,
} from '../../lib/index.ts';

/**
 * Bind-mounts and reads paths inside volumes. Programs that write to a volume may place symlinks at
 * any time; no symlink is followed out of the volume. Errors contain no host paths, because users
 * read them.
 */
export interface SubPaths {
  /**
   * Bind-mounts a path of the volume at the target; a missing path is created as a directory with
   * the mode of the volume.
   */
  bind(volume: string, part: string, target: string, signal: AbortSignal): Promise<void>;
  /**
   * Unmounts all subPath mounts below the directory and removes their targets; without any it does
   * nothing.
   */
  unbind(directory: string, signal: AbortSignal): Promise<void>;
  /**
   * Reads a file in the volume. Rejects when the path is not a file or the file is larger than
   * allowed.
   */
  readText(volume: string, part: string, maxBytes: number): Promise<string>;
}

/**
 * O_PATH of Linux, which Node.js does not export: opens a handle for resolving paths, not for
 * reading.
 */
const oPath = 0o10000000;
const stepFlags = oPath | constants.O_NOFOLLOW;
const targetDirectoryMode = 0o750;
const targetFileMode = 0o640;
/** The directory levels below a pod's subPath directory: `<volume>/<container>/<mount>`. */
const targetDepth = 3;
const mountDeadlineMs = 30_000;

/** Creates subPath mounts with the kernel's mount functions. */
export function hostSubPaths(
  clock: Clock,
  silent: Pick<UnresponsiveMounts, 'check'> = hostUnresponsiveMounts(clock, systemRandom()),
): SubPaths {
  const run = (file: string, args: readonly string[], signal: AbortSignal) =>
    runChecked({ file, args, clock, deadlineMs: mountDeadlineMs }, signal);
  return {
    async bind(volume, part, target, signal) {
      await unbindOne(target, run, signal);
      await checkAnswers(silent, join(volume, part), signal);
      await using place = await openSubPath(volume, part, 'make');
      const isDirectory = (await place.stat()).isDirectory();
      await createTarget(target, isDirectory ? 'directory' : 'file');
      // Mounts through the open handle, because the path could have been replaced by a symlink.
      const source = `/proc/${process.pid}/fd/${place.fd}`;
      const flags = ['--no-canonicalize'];
      await run('mount', mountArguments({ flags, options: ['bind'], source, target }), signal);
    },
    async unbind(directory, signal) {
      // Most pods have no subPath mounts, so the kubelet first checks whether the directory exists.
      // Only the kubelet writes to the directory, so a synchronous check is safe.
      if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return;
      await unmountAll(await mountsBelow(directory), run, signal);
      await removeTargets(directory);
    },
    async readText(volume, part, maxBytes) {
      await checkAnswers(silent, join(volume, part));
      await using place = await openSubPath(volume, part, 'find');
      const facts = await place.stat();
      if (!facts.isFile()) throw unusable('it is not a file');
      if (facts.size > maxBytes) throw unusable(`it has ${facts.size} bytes, at most ${maxBytes} are read`);
      return await readAtMost(place, maxBytes);
    },
  };
}

/** Checks that the file system of the volume responds. The error message is shown to users. */
async function checkAnswers(
  silent: Pick<UnresponsiveMounts, 'check'>,
  path: string,
  signal?: AbortSignal,
): Promise<void> {
  await silent.check(path, signal).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw isKind(error, 'Unavailable') ? unusable('its file system is not responding') : error;
  });
}

/** Reads at most `maxBytes`, because the file may grow while it is read. */
async function readAtMost(place: FileHandle, maxBytes: number): Promise<string> {
  await using file = await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(maxBytes + 1);
  let length = 0;
  for (let more = 1; more > 0 && length < buffer.length; length += more) {
    more = (await file.read(buffer, length, buffer.length - length, length)).bytesRead;
  }
  if (length > maxBytes) throw unusable(`it has more than ${maxBytes} bytes, at most these are read`);
  return buffer.toString('utf8', 0, length);
}

type Run = (file: string, args: readonly string[], signal: AbortSignal) => Promise<unknown>;

/** Removes the bind mount of a previous container instance. */
async function unbindOne(target: string, run: Run, signal: AbortSignal): Promise<void> {
  await unmountAll(await mountsBelow(target), run, signal);
  await removeTarget(target);
}

/**
 * Mounts inside the volume also appear below the target. They are made private first, so that
 * unmounting them here leaves them mounted in the volume.
 */
async function unmountAll(points: readonly string[], run: Run, signal: AbortSignal): Promise<void> {
  for (const point of points) {
    const isAround = points.some((other) => other.startsWith(`${point}/`));
    const args = mountArguments({ flags: ['--make-rprivate'], target: point });
    if (isAround) await run('mount', args, signal);
  }
  // Passes the mount points to umount as the kernel lists them, without canonicalizing them, which
  // could block on an unresponsive file system.
  for (const point of points.toReversed())
    await run('umount', umountArguments(['--no-canonicalize'], point), signal);
}

/**
 * Returns the mount points in the order of mounting. The kernel lists them with symlinks resolved.
 */
async function mountsBelow(path: string): Promise<readonly string[]> {
  const directory = await realpath(path).catch((error) => {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (directory === undefined) return [];
  const mounts = await readMountTable((file) => readFile(file, 'utf8'));
  const points = mounts.map(({ mountPoint }) => mountPoint);
  return points.filter((point) => point === directory || point.startsWith(`${directory}/`));
}

async function createTarget(target: string, kind: 'directory' | 'file'): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: targetDirectoryMode });
  if (kind === 'directory') await mkdir(target, { mode: targetDirectoryMode });
  else await (await open(target, 'wx', targetFileMode)).close();
}

/**
 * Also removes targets without a mount, which remain after a reboot. The content of a target is
 * never listed, because it may belong to the volume.
 */
async function removeTargets(directory: string, depth = targetDepth): Promise<void> {
  const names = depth === 0 ? [] : await namesIn(directory);
  for (const name of names) await removeTargets(join(directory, name), depth - 1);
  await removeTarget(directory);
}

/** Returns the names in a directory; empty if the path is missing or is not a directory. */
async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await lstat(directory)).isDirectory() ? await readdir(directory) : [];
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Removes only an empty directory or an empty file: anything else is content of a volume. */
async function removeTarget(target: string): Promise<void> {
  try {
    const facts = await lstat(target);
    if (facts.isDirectory()) await rmdir(target);
    else if (facts.size === 0) await unlink(target);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY'].includes(errnoOf(error) ?? '')) throw error;
  }
}

/**
 * Returns a handle to the path. First resolves the symlinks inside the volume; then opens each step
 * relative to the previous handle, so that a symlink placed in the meantime is not followed.
 */
async function openSubPath(volume: string, part: string, missing: 'make' | 'find'): Promise<FileHandle> {
  const root = await realpath(volume);
  const steps = await stepsTo(root, part, missing);
  let at = await open(root, stepFlags | constants.O_DIRECTORY);
  const { mode } = await at.stat();
  for (const step of steps) {
    await using last = at;
    at = await openStep(last, step, missing === 'make' ? mode & 0o7777 : undefined);
  }
  return at;
}

async function openStep(from: FileHandle, step: string, mode: number | undefined): Promise<FileHandle> {
  const path = `/proc/self/fd/${from.fd}/${step}`;
  const found = await open(path, stepFlags).catch((error) => {
    if (errnoOf(error) !== 'ENOENT') throw error;
    return undefined;
  });
  if (found !== undefined) return await unlessBad(found, checkPlace);
  if (mode === undefined) throw unusable('it does not exist');
  await mkdir(path, { mode }).catch((error: NodeJS.ErrnoException) => {
    // The path is omitted from the message, because users must not see paths of the host.
    throw unmade(error.message.split(`, ${error.syscall}`)[0] ?? 'it failed');
  });
  const made = await open(path, stepFlags | constants.O_DIRECTORY);
  // Sets the mode bits that containers need and that the umask has cleared.
  return await unlessBad(made, (place) => withMode(place, mode));
}

/** Returns the handle if the check succeeds; otherwise closes it and throws. */
async function unlessBad(
  place: FileHandle,
  check: (place: FileHandle) => Promise<void>,
): Promise<FileHandle> {
  try {
    await check(place);
    return place;
  } catch (error) {
    await place.close();
    throw error;
  }
}

async function checkPlace(place: FileHandle): Promise<void> {
  if ((await place.stat()).isSymbolicLink()) throw unusable('a symlink leads out of the volume');
}

async function withMode(place: FileHandle, mode: number): Promise<void> {
  await using readable = await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_DIRECTORY);
  await readable.chmod(mode);
}

/**
 * Resolves the path to steps below the root: symlinks are read one by one, and a symlink out of the
 * volume ends the resolution, so that no result depends on other paths of the host. Missing steps
 * are returned unchanged.
 */
async function stepsTo(root: string, part: string, missing: 'make' | 'find'): Promise<readonly string[]> {
  checkLength(part);
  let left = stepsOf(part);
  if (left.includes('..')) throw unusable("must not contain '..'");
  const resolved: string[] = [];
  for (let links = 0; left.length > 0; ) {
    const [step = '', ...rest] = left;
    left = rest;
    if (step === '..') {
      if (resolved.pop() === undefined) throw leadsOut();
      continue;
    }
    const path = [root, ...resolved, step].join(sep);
    const target = await linkTarget(path);
    if (target === 'missing') {
      if (missing === 'find' || left.includes('..')) throw unusable('it does not exist');
      return [...resolved, step, ...left];
    }
    if (target === undefined) {
      resolved.push(step);
      continue;
    }
    if (++links > maxLinks) throw unusable('it has too many symlinks');
    if (target.startsWith(sep)) {
      if (!`${target}${sep}`.startsWith(`${root}${sep}`)) throw leadsOut();
      resolved.length = 0;
    }
    left = [...stepsOf(target.startsWith(sep) ? target.slice(root.length) : target), ...left];
  }
  return resolved;
}

const maxLinks = 40;
/** The kernel's limits for the length of a path and for the length of one name in a path. */
const maxPathBytes = 4_096;
const maxStepBytes = 255;

function checkLength(part: string): void {
  if (Buffer.byteLength(part) > maxPathBytes) throw unusable(`it has more than ${maxPathBytes} bytes`);
  if (part.split('/').some((step) => Buffer.byteLength(step) > maxStepBytes))
    throw unusable(`a name in it has more than ${maxStepBytes} bytes`);
}

function stepsOf(path: string): readonly string[] {
  return path.split('/').filter((step) => step !== '' && step !== '.');
}

/** Returns the target of a symlink; undefined for any other existing file. */
async function linkTarget(path: string): Promise<string | 'missing' | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 'missing';
    throw unusable('it cannot be reached');
  }
}

function leadsOut(): KubelingError {
  return unusable('a symlink leads out of the volume');
}

/** Returns the reason for users, without the host paths that other errors contain. */
export function whyUnusable(error: unknown): string {
  const isOwn = error instanceof KubelingError && error.code === 'VOLUME_UNUSABLE';
  return isOwn ? error.message : 'it cannot be used';
}

/** The operation that failed: creating a missing path, or using an existing path. */
export function isUnmade(error: unknown): boolean {
  return error instanceof KubelingError && error.details['missing'] === 'unmade';
}

function unmade(why: string): KubelingError {
  return new KubelingError('VOLUME_UNUSABLE', why, { details: { missing: 'unmade' } });
}

function unusable(why: string): KubelingError {
  return new KubelingError('VOLUME_UNUSABLE', why);
}
