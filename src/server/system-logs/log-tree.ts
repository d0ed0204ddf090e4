import { constants } from 'node:fs';
import { type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { errnoOf, KubelingError } from '../../lib/index.ts';

export type LogNode =
  /** Contents of the file, which is opened when the first chunk is read. */
  | { readonly kind: 'file'; readonly chunks: AsyncIterable<Uint8Array> }
  /** Sorted names of the entries; those of directories have a trailing slash. */
  | { readonly kind: 'directory'; readonly names: readonly string[] }
  | { readonly kind: 'absent' };

/** Reads the log files of the host: everything below one directory, and nothing else. */
export interface LogTree {
  /**
   * Opens a file or directory by its path relative to the root. Rejects with LOG_REFUSED for paths
   * outside the root and for other file types.
   */
  inspect(path: string): Promise<LogNode>;
}

/**
 * Linux' open flag O_PATH, which Node.js does not export: the handle can be traversed but not read.
 */
const oPath = 0o10000000;
const stepFlags = oPath | constants.O_NOFOLLOW;
const maxLinks = 40;
const maxNames = 10_000;
const chunkBytes = 64 * 1024;

/**
 * Resolves a path without leaving the root. Pods may mount the directory and create symbolic links
 * at any time, so the path is opened component by component and the kernel follows no link: a link
 * below the root is read and resolved from the root, and a link that leads outside is rejected.
 */
export function createLogTree(root: string): LogTree {
  return { inspect: (path) => inspect(root, path) };
}

async function inspect(root: string, path: string): Promise<LogNode> {
  try {
    await using place = await walk(root, path);
    const facts = await place.stat();
    if (facts.isDirectory()) return { kind: 'directory', names: await namesIn(place) };
    if (!facts.isFile()) throw refused('it is neither a file nor a directory');
    return { kind: 'file', chunks: readFile(root, path) };
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return { kind: 'absent' };
    throw error;
  }
}

/**
 * Opens a handle on the file at the path, independent of later renames. The caller closes the
 * handle.
 */
async function walk(root: string, path: string): Promise<FileHandle> {
  const realRoot = await realpath(root);
  let left = segmentsOf(path);
  let links = 0;
  for (;;) {
    const step = await descend(realRoot, left);
    if (step.kind === 'there') return step.handle;
    if (++links > maxLinks) throw refused('there are too many symbolic links on the path');
    left = followed([root, realRoot], step);
  }
}

type Step =
  | { readonly kind: 'there'; readonly handle: FileHandle }
  /**
   * A symbolic link found while resolving a path: the part of the path above the link, its target,
   * and the part below the link.
   */
  | {
      readonly kind: 'link';
      readonly above: readonly string[];
      readonly target: string;
      readonly behind: readonly string[];
    };

async function descend(realRoot: string, segments: readonly string[]): Promise<Step> {
  let handle = await open(realRoot, oPath | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    for (const [index, segment] of segments.entries()) {
      const name = `/proc/self/fd/${handle.fd}/${segment}`;
      const next = await open(name, stepFlags);
      if ((await next.stat()).isSymbolicLink()) {
        await next.close();
        // If the link was replaced after it was opened, its new target is resolved with the same
        // checks.
        const target = await readlink(name);
        await handle.close();
        return { kind: 'link', above: segments.slice(0, index), target, behind: segments.slice(index + 1) };
      }
      await handle.close();
      handle = next;
    }
    return { kind: 'there', handle };
  } catch (error) {
    await handle.close().catch(() => {});
    throw error;
  }
}

function followed(
  roots: readonly string[],
  { above, target, behind }: Extract<Step, { kind: 'link' }>,
): string[] {
  if (!posix.isAbsolute(target)) return normalizeSegments([...above, ...target.split('/'), ...behind]);
  const root = roots.find((each) => target === each || target.startsWith(`${each}/`));
  if (root === undefined) throw refused('a symbolic link leads out of the log directory');
  return normalizeSegments([...target.slice(root.length).split('/'), ...behind]);
}

function segmentsOf(path: string): string[] {
  if (path.includes('\0')) throw refused('its name is not valid');
  return normalizeSegments(path.split('/'));
}

function normalizeSegments(segments: readonly string[]): string[] {
  const normalized: string[] = [];
  for (const segment of segments) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') normalized.push(segment);
    else if (normalized.pop() === undefined) throw refused('it is above the log directory');
  }
  return normalized;
}

async function namesIn(directory: FileHandle): Promise<readonly string[]> {
  const entries = await readdir(`/proc/self/fd/${directory.fd}/`, { withFileTypes: true });
  return entries
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
    .slice(0, maxNames);
}

/**
 * Reads the file up to its size when it was opened, because a log that is being written would never
 * end.
 */
async function* readFile(root: string, path: string): AsyncGenerator<Uint8Array> {
  await using file = await openFile(root, path);
  const { size } = await file.stat();
  for (let at = 0; at < size; ) {
    const buffer = Buffer.alloc(Math.min(chunkBytes, size - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function openFile(root: string, path: string): Promise<FileHandle> {
  await using place = await walk(root, path);
  if (!(await place.stat()).isFile()) throw refused('it is no longer a file');
  return await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
}

function refused(why: string): KubelingError {
  return new KubelingError('LOG_REFUSED', `Cannot read a log of the host: ${why}`);
}
