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

/** Calls of the kernel that answer at once or later. */
export interface FileCalls {
  lstat(path: string): Now<Stats>;
  readdir(path: string): Now<string[]>;
  readlink(path: string): Now<string>;
  mkdir(path: string, mode: number): Now<void>;
  /** With exactly this mode, whatever the mask of the process. */
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
    // Each call is a way through the pool and back: one will do unless the owner is another.
    if (owner === undefined) {
      await writeFile(path, data, { flag: 'wx', mode });
      // The mask of the process, or a default list of the directory, may have taken bits away.
      if ((lstatSync(path).mode & 0o7777) !== mode) await chmod(path, mode);
      return;
    }
    await using file = await open(path, 'wx', ownerOnly);
    await file.writeFile(data);
    // The owner first: changing it may take bits away.
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
const quickToLookAt = new RegExp(
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
 * How to look at a path of a pod. A call that goes through the thread pool costs ten times what the kernel needs for it,
 * and a pod takes hundreds of them: what only this node makes is looked at at once. Volumes that others serve may never
 * answer, and are left to the pool.
 */
export function callsToLookAt(path: string): FileCalls {
  return isQuickToLookAt(path) ? atOnce : later;
}

export function isQuickToLookAt(path: string): boolean {
  return quickToLookAt.test(path);
}

/** How to change something at a path of a pod: at once in a file system in memory, and by the pool on a disk, which may be slow. */
export function callsToChange(path: string): FileCalls {
  return inMemory.test(path) ? atOnce : later;
}

export function whenToLookAt(path: string): CallMode {
  return isQuickToLookAt(path) ? 'at-once' : 'later';
}

export const volumeTreeCalls: TreeCalls = { readMode: whenToLookAt, mutations: callsToChange };
