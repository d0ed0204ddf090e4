import { watch } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errnoOf, KubelingError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { type KeyPair, readKeyPair } from '../protocols/x509/index.ts';

export type CertificateFileKind = 'file' | 'link' | 'directory' | 'other';

/**
 * File system access of this package. Failures are FILE_READ and FILE_WRITE errors; a missing file
 * is a result, not a failure.
 */
export interface CertificateFiles {
  /** Returns the text of a file, through symbolic links; undefined if it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Returns the kind of the file without following links; undefined if it does not exist. */
  kindAt(path: string): Promise<CertificateFileKind | undefined>;
  /** Returns the target of a symbolic link as written; undefined if there is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** Returns the sorted names in a directory; an empty list if it does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Atomically and durably replaces a file and creates its directory. */
  replace(path: string, text: string, mode: number): Promise<void>;
  /** Creates a symbolic link and its directory; fails if the path exists. */
  link(target: string, path: string): Promise<void>;
  /** Atomically and durably renames a path; replaces an existing one. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file; a missing file is not an error. */
  remove(path: string): Promise<void>;
  /**
   * Calls the listener when a file may have changed, until disposed; calls may be spurious or
   * missing, so the caller also polls.
   */
  watch(paths: readonly string[], changed: () => void): Disposable;
}

const directoryMode = 0o755;
/** The limit for files that are read, larger than every certificate chain and kubeconfig. */
const largestFile = 4 * 2 ** 20;

export function realCertificateFiles(): CertificateFiles {
  return {
    read: (path) => reading(path, () => readBoundedFile(path, largestFile), undefined),
    kindAt: (path) => reading(path, () => kindAt(path), undefined),
    readLink: (path) => reading(path, () => readlink(path), undefined),
    names: (directory) => reading(directory, async () => (await readdir(directory)).sort(), []),
    async replace(path, text, mode) {
      await writing(path, () => makeDirectoryOf(path));
      await writeFileAtomic(path, text, { mode });
    },
    link: (target, path) =>
      writing(path, async () => {
        await makeDirectoryOf(path);
        await symlink(target, path);
      }),
    rename: (from, to) =>
      writing(to, async () => {
        await rename(from, to);
        await syncDirectory(dirname(to));
      }),
    remove: (path) => writing(path, () => rm(path, { force: true })),
    watch: watchDirectories,
  };
}

async function kindAt(path: string): Promise<CertificateFileKind> {
  const facts = await lstat(path);
  if (facts.isSymbolicLink()) return 'link';
  if (facts.isDirectory()) return 'directory';
  return facts.isFile() ? 'file' : 'other';
}

async function makeDirectoryOf(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: directoryMode });
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  // A failure to sync the directory is ignored: some network file systems do not support it.
  await directory.sync().catch(() => {});
}

/**
 * Watches directories instead of files: replacing a file creates a new inode, and mounted secrets
 * change through a symbolic link in the directory.
 */
function watchDirectories(paths: readonly string[], changed: () => void): Disposable {
  const directories = new Set(paths.map((path) => dirname(path)));
  const names = new Set(paths.map((path) => basename(path)));
  const watchers = [...directories].flatMap((directory) => {
    try {
      const onEvent = (_: string, name: string | null) => {
        if (name === null || names.has(name) || name.startsWith('..')) changed();
      };
      const watcher = watch(directory, { persistent: false }, onEvent);
      watcher.on('error', () => watcher.close());
      return [watcher];
    } catch {
      return [];
    }
  });
  return { [Symbol.dispose]: () => watchers.forEach((watcher) => void watcher.close()) };
}

async function reading<T>(path: string, act: () => Promise<T>, absent: T): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return absent;
    throw new KubelingError('FILE_READ', `Cannot read ${path}`, { cause: error, details: { path } });
  }
}

async function writing<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new KubelingError('FILE_WRITE', `Cannot write ${path}`, { cause: error, details: { path } });
  }
}

/** A certificate and its key, possibly in one file. */
export interface PairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/**
 * Loads a pair. Returns undefined if one of the two files is missing; throws if they cannot be read
 * or do not match.
 */
export async function loadPairFiles(files: CertificateFiles, at: PairFiles): Promise<KeyPair | undefined> {
  return await new PairReader(files, at).load();
}

/** Loads a pair repeatedly; an unchanged pair is not parsed again. */
export class PairReader {
  readonly at: PairFiles;
  readonly #files: CertificateFiles;
  #last: { readonly certificate: string; readonly key: string; readonly pair: KeyPair } | undefined;

  constructor(files: CertificateFiles, at: PairFiles) {
    this.#files = files;
    this.at = at;
  }

  /**
   * Loads the pair. Returns undefined if one of the two files is missing; throws if they cannot be
   * read or do not match.
   */
  async load(): Promise<KeyPair | undefined> {
    const { certificateFile, keyFile } = this.at;
    const [certificate, key] = await Promise.all([
      this.#files.read(certificateFile),
      this.#files.read(keyFile),
    ]);
    if (certificate === undefined || key === undefined) return undefined;
    const last = this.#last;
    if (last?.certificate === certificate && last.key === key) return last.pair;
    const from = certificateFile === keyFile ? certificateFile : `${certificateFile} and ${keyFile}`;
    const pair = readKeyPair({ certificate, key, from });
    this.#last = { certificate, key, pair };
    return pair;
  }
}
