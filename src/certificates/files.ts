import { watch } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errnoOf, KubelingError, readBoundedFile, writeFileAtomic } from '../lib/index.ts';
import { type KeyPair, readKeyPair } from '../protocols/x509/index.ts';

export type CertificateFileKind = 'file' | 'link' | 'directory' | 'other';

/**
 * The machine's files as far as certificates need them. Failures are FILE_READ and FILE_WRITE errors; what is not there
 * is an answer, not a failure.
 */
export interface CertificateFiles {
  /** The text of a file, at the far end of links too; undefined when nothing is there. */
  read(path: string): Promise<string | undefined>;
  /** What is there; undefined for nothing. Links are not followed. */
  kindAt(path: string): Promise<CertificateFileKind | undefined>;
  /** Where a link points, as it is written; undefined when there is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** The names in a directory, sorted; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** Puts a new file in the place of the old one in one step, safe from a power cut, and makes its directory. */
  replace(path: string, text: string, mode: number): Promise<void>;
  /** Makes a link and its directory; something there already is a failure. */
  link(target: string, path: string): Promise<void>;
  /** In one step, over what is there, safe from a power cut. */
  rename(from: string, to: string): Promise<void>;
  /** Fine when it is not there. */
  remove(path: string): Promise<void>;
  /**
   * Says when one of the files may have changed, until disposed; may say so too often, and may miss a change, so look
   * from time to time as well.
   */
  watch(paths: readonly string[], changed: () => void): Disposable;
}

const directoryMode = 0o755;
/** No certificate chain or kubeconfig comes near this. */
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
  // Some network file systems know no sync of directories; there is nothing better to do on them.
  await directory.sync().catch(() => {});
}

/** Directories, not files: a file that is replaced is another one, and mounted secrets change by a link beside them. */
function watchDirectories(paths: readonly string[], changed: () => void): Disposable {
  const directories = new Set(paths.map((path) => dirname(path)));
  const names = new Set(paths.map((path) => basename(path)));
  const watchers = [...directories].flatMap((directory) => {
    try {
      const told = (_: string, name: string | null) => {
        if (name === null || names.has(name) || name.startsWith('..')) changed();
      };
      const watcher = watch(directory, { persistent: false }, told);
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

/** A certificate and its key, which may be in one file. */
export interface PairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Undefined when one of the two is not there; throws when they cannot be read or do not fit. */
export async function loadPairFiles(files: CertificateFiles, at: PairFiles): Promise<KeyPair | undefined> {
  return await new PairReader(files, at).load();
}

/** Reads a pair again and again; what has not changed is not taken apart again. */
export class PairReader {
  readonly at: PairFiles;
  readonly #files: CertificateFiles;
  #last: { readonly certificate: string; readonly key: string; readonly pair: KeyPair } | undefined;

  constructor(files: CertificateFiles, at: PairFiles) {
    this.#files = files;
    this.at = at;
  }

  /** Undefined when one of the two is not there; throws when they cannot be read or do not fit. */
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
