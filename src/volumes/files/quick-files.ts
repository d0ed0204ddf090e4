import {
  chmodSync,
  closeSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  type PathLike,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import {
  chmod,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import type { CallMode, TreeCalls } from '../../lib/index.ts';

type Now<T> = T | Promise<T>;

export interface NewFile {
  readonly data: Buffer;
  readonly mode: number;
  readonly owner: number | undefined;
}

/** File system calls that run synchronously or in the thread pool. */
export interface FileCalls {
  lstat(path: string): Now<Stats>;
  readdir(path: string): Now<string[]>;
  readlink(path: string): Now<string>;
  mkdir(path: string, mode: number): Now<void>;
  /** Creates a file with exactly this mode, independent of the umask. */
  create(path: string, file: NewFile): Now<void>;
  chmod(path: string, mode: number): Now<void>;
  lchown(path: string, owner: number, group: number): Now<void>;
  symlink(target: string, path: string): Now<void>;
  rename(from: PathLike, to: PathLike): Now<void>;
  unlink(path: PathLike): Now<void>;
  rmdir(path: PathLike): Now<void>;
}

const ownerOnly = 0o600;

const later: FileCalls = {
  lstat: (path) => lstat(path),
  readdir: (path) => readdir(path),
  readlink: (path) => readlink(path),
  mkdir: (path, mode) => mkdir(path, { mode }) as Promise<unknown> as Promise<void>,
  create: async (path, { data, mode, owner }) => {
    // The owner is set only if it differs, because each call is a round trip through the thread
    // pool.
    if (owner === undefined) {
      await writeFile(path, data, { flag: 'wx', mode });
      // The umask or a default ACL may have cleared mode bits.
      if ((lstatSync(path).mode & 0o7777) !== mode) await chmod(path, mode);
      return;
    }
    await using file = await open(path, 'wx', ownerOnly);
    await file.writeFile(data);
    // The owner is set before the mode, because chown clears mode bits.
    await file.chown(owner, -1);
    await file.chmod(mode);
  },
  chmod,
  lchown,
  symlink: (target, path) => symlink(target, path),
  rename,
  unlink,
  rmdir: (path) => rmdir(path),
};

const atOnce: FileCalls = {
  lstat: (path) => lstatSync(path),
  readdir: (path) => readdirSync(path),
  readlink: (path) => readlinkSync(path),
  mkdir: (path, mode) => void mkdirSync(path, { mode }),
  create: (path, { data, mode, owner }) => {
    const file = openSync(path, 'wx', ownerOnly);
    try {
      writeFileSync(file, data);
      if (owner !== undefined) fchownSync(file, owner, -1);
      fchmodSync(file, mode);
    } finally {
      closeSync(file);
    }
  },
  chmod: chmodSync,
  lchown: lchownSync,
  symlink: (target, path) => symlinkSync(target, path),
  rename: renameSync,
  unlink: unlinkSync,
  rmdir: (path) => rmdirSync(path),
};

const pod = '/pods/[^/]+';
const kind = String.raw`kubernetes\.io~`;
const quickPaths = new RegExp(
  [
    `${pod}(?:/volume(?:s|Devices)(?:/${kind}[^/]+)?)?$`,
    '/pods$',
    `${pod}/(?:plugins|containers)(?:/|$)`,
    String.raw`/plugins/kubernetes\.io(?:/csi|~local-volume)/volumeDevices$`,
    String.raw`/plugins/kubernetes\.io/local-volume/mounts$`,
    `${pod}/volumes/${kind}(?:configmap|secret|downward-api|projected)/`,
    // Not what is in them: pods may have mounted anything there.
    `${pod}/volumes/${kind}empty-dir/[^/]+$`,
  ].join('|'),
);
const inMemory = new RegExp(`${pod}/volumes/${kind}(?:secret|downward-api|projected)/[^/]+/.`);

/**
 * Returns how to read a path of a pod. A call through the thread pool costs ten times as much as
 * the system call, and a pod needs hundreds, so paths that only this node creates are read
 * synchronously. Volumes of file servers may not respond and are read in the thread pool.
 */
export function fileCallsFor(path: string): FileCalls {
  return isQuickPath(path) ? atOnce : later;
}

export function isQuickPath(path: string): boolean {
  return quickPaths.test(path);
}

/**
 * Returns how to change a path of a pod: synchronously in memory, in the thread pool on a disk,
 * which may be slow.
 */
export function callsToChange(path: string): FileCalls {
  return inMemory.test(path) ? atOnce : later;
}

export function callModeFor(path: string): CallMode {
  return isQuickPath(path) ? 'at-once' : 'later';
}

export const volumeTreeCalls: TreeCalls = { readMode: callModeFor, mutations: callsToChange };
