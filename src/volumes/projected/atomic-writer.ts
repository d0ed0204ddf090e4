import { posix } from 'node:path';
import { describeError, KubelingError, YieldingCounter } from '../../lib/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { directoriesAbove, type Payload, topNames, unusable } from './payload.ts';

/*
 * volume/key -> ..data/key the path that containers open
 *   volume/..data -> ..2026_01_31_… replaced atomically: all files change at once
 *   volume/..2026_01_31_…/key the content, never changed once visible
 *   volume/..data_tmp -> ..2026_01_31_… exists only while `..data` is replaced
 */
export const dataLink = '..data';
const nextDataLink = '..data_tmp';
const versionName = /^\.\.\d{4}(?:_\d{2}){5}\.\d+$/;
const versionMode = 0o755;
const mostNames = 100;
/**
 * The number of file calls after which the work yields to the event loop, because file calls on a
 * tmpfs complete without yielding.
 */
const callsPerTurn = 256;
/** The number of bytes whose writing takes about as long as one file call. */
const bytesPerCall = 16_384;

export interface PayloadTarget {
  readonly directory: string;
  /** The group of all files in the volume, from the fsGroup of the pod. */
  readonly group?: number | undefined;
  /** `read` lets the group read all files; `as-is` keeps the modes of the files. Default: read. */
  readonly access?: 'read' | 'as-is' | undefined;
  /**
   * The version that the previous write replaced. A reader may have used it until now, so only this
   * write removes it, at its end.
   */
  readonly retired?: string | undefined;
  /** Runs the ownership change and observes its duration. */
  readonly timed?: ((work: () => Promise<void>) => Promise<void>) | undefined;
  /** Directories in the volume that are not part of its content: mount points of other volumes. */
  readonly nested?: readonly string[] | undefined;
}

export interface WrittenPayload {
  /** The version directory to which `..data` points. */
  readonly version: string;
  /**
   * The version to which `..data` pointed before this write. A reader may still use it, so only the
   * next write removes it.
   */
  readonly retired: string | undefined;
}

/** Returns a unique name for a new version of the content. */
export function versionNameAt(nowMs: number, digits: number): string {
  const [date = '', time = ''] = new Date(nowMs).toISOString().split('T');
  return `..${date.replaceAll('-', '_')}_${time.slice(0, 8).replaceAll(':', '_')}.${digits}`;
}

/**
 * Writes the payload, which the caller has validated, to an existing directory. Readers get either
 * the old or the new content, and keep the old one if the write fails or is killed at any step; the
 * leftovers of an earlier attempt are completed or removed. Unchanged content is not written again,
 * even if its modes differ.
 */
export async function writePayload(
  files: VolumeFiles,
  target: PayloadTarget,
  payload: Payload,
  newName: () => string,
): Promise<WrittenPayload> {
  const { directory } = target;
  const current = await currentVersion(files, directory);
  await removeLeftovers(files, target, current);
  const isSame = current !== undefined && (await holds(files, posix.join(directory, current), payload));
  const version = isSame
    ? current
    : await publish(files, target, payload, await unusedName(files, directory, newName));
  await linkVisible(files, target, payload);
  await removeLeftovers(files, { directory, retired: current }, version);
  return { version, retired: isSame ? undefined : current };
}

/**
 * Returns the name of the published version; undefined if the volume has none written by a kubelet.
 */
export async function currentVersion(files: VolumeFiles, directory: string): Promise<string | undefined> {
  const version = await files.readLink(posix.join(directory, dataLink));
  if (version === undefined || !versionName.test(version)) return undefined;
  return (await files.kindAt(posix.join(directory, version))) === 'directory' ? version : undefined;
}

/** Whether all files of the payload are reachable through the links of the volume. */
export async function isVisible(files: VolumeFiles, directory: string, payload: Payload): Promise<boolean> {
  const there = new Set(await files.names(directory));
  return [...topNames(payload).keys()].every((name) => there.has(name));
}

/**
 * Whether the version exists and all its files are reachable: a killed process may have left it
 * incomplete.
 */
export async function isComplete(files: VolumeFiles, directory: string): Promise<boolean> {
  const version = await currentVersion(files, directory);
  if (version === undefined) return false;
  const there = new Set(await files.names(directory));
  return (await files.names(posix.join(directory, version))).every((name) => there.has(name));
}

/**
 * Removes versions left by a killed process: unpublished ones, and replaced ones that were not
 * removed.
 */
export async function removeLeftovers(
  files: VolumeFiles,
  { directory, retired }: Pick<PayloadTarget, 'directory' | 'retired'>,
  current: string | undefined,
): Promise<void> {
  for (const name of await files.names(directory)) {
    const path = posix.join(directory, name);
    const isLeft = name === nextDataLink || (versionName.test(name) && name !== current && name !== retired);
    if (isLeft) await clear(files, path);
    // `..data` may be a directory created for a subPath mount before the content existed.
    else if (name === dataLink && current === undefined) await isCleared(files, path);
  }
}

/**
 * Removes the entry at the path, whatever its type: a foreign file here would block every later
 * write.
 */
async function clear(files: VolumeFiles, path: string): Promise<void> {
  if ((await files.kindAt(path)) === 'directory') await files.removeTree(path);
  else await files.unlink(path);
}

/** Whether the version directory contains exactly the files of the payload. */
async function holds(files: VolumeFiles, version: string, payload: Payload): Promise<boolean> {
  const turns = new YieldingCounter(callsPerTurn);
  const directories = directoriesAbove(payload.keys());
  if (!(await hasPaths(files, version, { payload, directories }, turns))) return false;
  for (const [path, { data }] of payload) {
    const bytes = await files.readFile(posix.join(version, path));
    if (bytes === undefined || !bytes.equals(data)) return false;
    if (turns.count(1 + data.length / bytesPerCall)) await turns.yield();
  }
  return true;
}

/**
 * Stops at the first unexpected path: the work must be bounded by the payload, not by what an
 * earlier write left there.
 */
async function hasPaths(
  files: VolumeFiles,
  version: string,
  { payload, directories }: { readonly payload: Payload; readonly directories: ReadonlySet<string> },
  turns: YieldingCounter,
): Promise<boolean> {
  let found = 0;
  for (const directory of ['', ...directories]) {
    for (const name of await files.names(posix.join(version, directory))) {
      const path = posix.join(directory, name);
      if (!payload.has(path) && !directories.has(path)) return false;
      found++;
    }
    if (turns.count()) await turns.yield();
  }
  return found === payload.size + directories.size;
}

/**
 * Creates a version directory. The name must be unused: the clean-up after a failure must not
 * remove existing content.
 */
async function unusedName(files: VolumeFiles, directory: string, newName: () => string): Promise<string> {
  for (let left = mostNames; left > 0; left--) {
    const name = newName();
    if ((await files.kindAt(posix.join(directory, name))) === undefined) return name;
  }
  throw unusable(`every name for new content of ${directory} is taken`);
}

async function publish(
  files: VolumeFiles,
  { directory, group, access, timed = (work) => work() }: PayloadTarget,
  payload: Payload,
  version: string,
): Promise<string> {
  const path = posix.join(directory, version);
  const next = posix.join(directory, nextDataLink);
  try {
    await files.makeDirectory(path, versionMode);
    const turns = new YieldingCounter(callsPerTurn);
    for (const [name, { data, mode, owner }] of payload) {
      await files.writeFile(posix.join(path, name), data, { mode, owner });
      if (turns.count(1 + data.length / bytesPerCall)) await turns.yield();
    }
    // The group is set before the files become visible, so that the group can always read them.
    if (group !== undefined) await timed(() => files.giveToGroup(directory, group, access));
    await files.link(version, next);
    await files.rename(next, posix.join(directory, dataLink));
    return version;
  } catch (error) {
    await files.unlink(next).catch(() => {});
    if (await isUnseen(files, directory, version)) await files.removeTree(path).catch(() => {});
    throw unwritten(error, version);
  }
}

/**
 * The message omits the generated version name, so that a repeated failure has the same message.
 */
function unwritten(error: unknown, version: string): unknown {
  const text = describeError(error);
  if (!text.includes(version)) return error;
  return new KubelingError('FILE_WRITE', `Cannot write the new content: ${reasonOf(error) ?? 'it failed'}`);
}

/** Returns the error code without paths. */
function reasonOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { syscall, message } = at as NodeJS.ErrnoException;
    if (syscall !== undefined) return message.split(`, ${syscall}`)[0];
  }
  return undefined;
}

/**
 * Whether the version is certainly not published. It may be published although the final rename
 * reported an error.
 */
async function isUnseen(files: VolumeFiles, directory: string, version: string): Promise<boolean> {
  return await files.readLink(posix.join(directory, dataLink)).then(
    (shown) => shown !== version,
    () => false,
  );
}

/** Replaces an empty directory created for a subPath mount before the content existed. */
async function isCleared(files: VolumeFiles, path: string): Promise<boolean> {
  return (await files.kindAt(path)) === 'directory' && (await files.removeEmptyDirectory(path)) === 'gone';
}

/**
 * Frees the path of a link. A symbolic link with a foreign target is replaced: containers would
 * read files outside the volume through it.
 */
async function isFreed(files: VolumeFiles, path: string, target: string): Promise<boolean> {
  const found = await files.readLink(path);
  if (found === target) return false;
  if (found === undefined) return await isCleared(files, path);
  await files.unlink(path);
  return true;
}

/**
 * Creates missing links and removes links without content. Runs after `..data` was switched, so
 * that existing links stay valid.
 */
async function linkVisible(
  files: VolumeFiles,
  { directory, nested = [] }: PayloadTarget,
  payload: Payload,
): Promise<void> {
  const desired = topNames(payload);
  const there = new Set(await files.names(directory));
  const mountPoints = new Set(nested);
  const turns = new YieldingCounter(callsPerTurn);
  for (const [name, { owner }] of desired) {
    const path = posix.join(directory, name);
    const target = posix.join(dataLink, name);
    const isFree = !there.has(name) || (!mountPoints.has(name) && (await isFreed(files, path, target)));
    if (isFree) await files.link(target, path, owner);
    if (turns.count()) await turns.yield();
  }
  for (const name of there) {
    if (turns.count()) await turns.yield();
    if (name.startsWith('..') || desired.has(name)) continue;
    const path = posix.join(directory, name);
    if ((await files.readLink(path)) === posix.join(dataLink, name)) await files.unlink(path);
  }
}
