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
 * Parts of volumes. Whoever writes to a volume may put links there at any moment, also while we look: no link ever leads
 * out of the volume. What fails is said without paths of the host: users read it.
 */
export interface SubPaths {
  /** Shows a part of the volume at the target as well; a part that is missing becomes a directory like the volume itself. */
  bind(volume: string, part: string, target: string, signal: AbortSignal): Promise<void>;
  /** Undoes every bind below the directory and removes the targets; fine when there are none. */
  unbind(directory: string, signal: AbortSignal): Promise<void>;
  /** Rejects also for what is no file, or is longer. */
  readText(volume: string, part: string, maxBytes: number): Promise<string>;
}

/** Linux only, and in no list of Node's: a handle to a place that can be gone through but not read. */
const oPath = 0o10000000;
const stepFlags = oPath | constants.O_NOFOLLOW;
const targetDirectoryMode = 0o750;
const targetFileMode = 0o640;
/** Below the directory of all of a pod: `<volume>/<container>/<mount>`. */
const targetDepth = 3;
const mountDeadlineMs = 30_000;

/** The real ones, with the mounts of this machine. */
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
      // The handle names the place itself; a name could have become a link by now.
      const source = `/proc/${process.pid}/fd/${place.fd}`;
      const flags = ['--no-canonicalize'];
      await run('mount', mountArguments({ flags, options: ['bind'], source, target }), signal);
    },
    async unbind(directory, signal) {
      // Most pods have none, and the directory itself is nobody's but ours.
      if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return;
      await unmountAll(await mountsBelow(directory), run, signal);
      await removeTargets(directory);
    },
    async readText(volume, part, maxBytes) {
      await checkAnswers(silent, join(volume, part));
      await using place = await openSubPath(volume, part, 'find');
      const facts = await place.stat();
      if (!facts.isFile()) throw unusable('it is no file');
      if (facts.size > maxBytes) throw unusable(`it has ${facts.size} bytes, at most ${maxBytes} are read`);
      return await readAtMost(place, maxBytes);
    },
  };
}

/** Users read what is said of it. */
async function checkAnswers(
  silent: Pick<UnresponsiveMounts, 'check'>,
  path: string,
  signal?: AbortSignal,
): Promise<void> {
  await silent.check(path, signal).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw isKind(error, 'Unavailable') ? unusable('its file system does not answer') : error;
  });
}

/** Whatever its size was said to be: somebody may write to it all the while. */
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

/** A container that starts again may find what its last instance was given. */
async function unbindOne(target: string, run: Run, signal: AbortSignal): Promise<void> {
  await unmountAll(await mountsBelow(target), run, signal);
  await removeTarget(target);
}

/** What others have mounted in the volume meanwhile is shown here, too; it stays where it is in the volume itself. */
async function unmountAll(points: readonly string[], run: Run, signal: AbortSignal): Promise<void> {
  for (const point of points) {
    const isAround = points.some((other) => other.startsWith(`${point}/`));
    const args = mountArguments({ flags: ['--make-rprivate'], target: point });
    if (isAround) await run('mount', args, signal);
  }
  // As the kernel names them: to find that out, the program would ask a file system that may not answer.
  for (const point of points.toReversed())
    await run('umount', umountArguments(['--no-canonicalize'], point), signal);
}

/** In the order they were made. The kernel names them without the links that may lead to the directory. */
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
 * Those too that have lost their mount, as all have after the machine was started anew. What lies in a target is never
 * looked at: if it is not the volume's, it is somebody else's.
 */
async function removeTargets(directory: string, depth = targetDepth): Promise<void> {
  const names = depth === 0 ? [] : await namesIn(directory);
  for (const name of names) await removeTargets(join(directory, name), depth - 1);
  await removeTarget(directory);
}

/** None of what is no directory itself. */
async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await lstat(directory)).isDirectory() ? await readdir(directory) : [];
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Never more than an empty directory or an empty file: anything else is content of somebody's. */
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
 * A handle to the part. Links that lead to another place of the volume are followed first; then each step is taken from
 * the handle of the one before, and what has become a link since ends the way.
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
  if (mode === undefined) throw unusable('it is not there');
  await mkdir(path, { mode }).catch((error: NodeJS.ErrnoException) => {
    // Without the path, which is one of the host.
    throw unmade(error.message.split(`, ${error.syscall}`)[0] ?? 'it failed');
  });
  const made = await open(path, stepFlags | constants.O_DIRECTORY);
  // The mask of the process took from it what a container needs.
  return await unlessBad(made, (place) => withMode(place, mode));
}

/** The handle, which is closed when it does not stand the check. */
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
  if ((await place.stat()).isSymbolicLink()) throw unusable('a link leads out of the volume');
}

async function withMode(place: FileHandle, mode: number): Promise<void> {
  await using readable = await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_DIRECTORY);
  await readable.chmod(mode);
}

/**
 * Resolves the part to steps below the root without leaving it, so that no answer depends on what exists elsewhere on the host: links are
 * read one by one, and a link out of the volume ends the resolution. Missing steps are returned as they are.
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
      if (missing === 'find' || left.includes('..')) throw unusable('it is not there');
      return [...resolved, step, ...left];
    }
    if (target === undefined) {
      resolved.push(step);
      continue;
    }
    if (++links > maxLinks) throw unusable('it has too many links');
    if (target.startsWith(sep)) {
      if (!`${target}${sep}`.startsWith(`${root}${sep}`)) throw leadsOut();
      resolved.length = 0;
    }
    left = [...stepsOf(target.startsWith(sep) ? target.slice(root.length) : target), ...left];
  }
  return resolved;
}

const maxLinks = 40;
/** The limits of the kernel for a path and for one of its steps. */
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

/** Returns the target of a link, undefined for anything else that exists. */
async function linkTarget(path: string): Promise<string | 'missing' | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 'missing';
    throw unusable('it cannot be reached');
  }
}

function leadsOut(): KubelingError {
  return unusable('a link leads out of the volume');
}

/** Why a part could not be had, without the paths of the host that other errors name. */
export function whyUnusable(error: unknown): string {
  const isOurs = error instanceof KubelingError && error.code === 'VOLUME_UNUSABLE';
  return isOurs ? error.message : 'it cannot be used';
}

/** Whether what is missing could not be made, rather than not be used. */
export function isUnmade(error: unknown): boolean {
  return error instanceof KubelingError && error.details['missing'] === 'unmade';
}

function unmade(why: string): KubelingError {
  return new KubelingError('VOLUME_UNUSABLE', why, { details: { missing: 'unmade' } });
}

function unusable(why: string): KubelingError {
  return new KubelingError('VOLUME_UNUSABLE', why);
}

/** For machines that exist only in memory: volumes have files, and nothing is ever mounted. */
export function memorySubPaths(read: (path: string) => string | undefined): SubPaths {
  return {
    bind: async () => {},
    unbind: async () => {},
    async readText(volume, part) {
      const text = read(`${volume}/${part}`);
      if (text === undefined) throw unusable('it is not there');
      return text;
    },
  };
}
