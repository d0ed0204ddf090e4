import { createHash } from 'node:crypto';
import { watch } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, posix } from 'node:path';
import { type Clock, describeError, KubelingError, withDeadline } from '../lib/index.ts';
import { fullNameOf } from '../pods/index.ts';
import {
  type ManifestPod,
  type ManifestReader,
  type ManifestReading,
  manifestLimit,
  manifestTooLarge,
} from './manifest.ts';
import type { LastGoodManifests } from './manifest-checkpoints.ts';
import { problemAt, type SourceProblem } from './problems.ts';

/** Scan result of one manifest file. */
export interface FileState {
  /** Digest of the manifest's content. */
  readonly digest: string;
  /** Version of the file; changes with each write, even with the same content. */
  readonly version: string;
  /**
   * The pods that the file defines. While the file cannot be read completely, they include the pods
   * it defined before.
   */
  readonly pods: readonly ManifestPod[];
  readonly problems: readonly SourceProblem[];
}

export type FileStates = ReadonlyMap<string, FileState>;

export interface FolderScan {
  readonly files: FileStates;
  /** Paths of files that defined pods and no longer exist. */
  readonly disappeared: readonly string[];
  /** True when a file was written to during its read, so that it must be read again soon. */
  readonly unsettled: boolean;
  /** Content of the files that became valid in this scan, by path. */
  readonly good: ReadonlyMap<string, Uint8Array>;
}

/** Matches copies of manifests left behind by editors and package managers. */
const leftovers = /(?:~|\.bak|\.swp|\.orig|\.rpmsave)$/;

export function isManifestName(name: string): boolean {
  return !name.startsWith('.') && !leftovers.test(name);
}

/** Deadline for listing the directory, and for reading the checkpoint of one file. */
export const scanDeadlineMs = 30_000;
/** Deadline for reading one file, so that it does not delay the other files. */
const fileDeadlineMs = 5_000;

/** Called during a scan with all manifest files found so far, including new ones. */
export type OnFound = (files: FileStates) => void;

export interface FileScannerOptions {
  readonly clock: Clock;
  readonly files: ManifestFiles;
  readonly reader: ManifestReader;
  readonly nodeName: string;
  readonly lastGood: LastGoodManifests;
}

type FileReading = { readonly state: FileState; readonly good?: Uint8Array } | 'unsettled' | undefined;

/** Scans all manifest files: computes the current state of each file from its previous state. */
export class FileScanner {
  readonly #options: FileScannerOptions;
  /**
   * Files whose read is in flight, including reads that timed out, so that no file is read twice
   * concurrently.
   */
  readonly #inFlight = new Set<string>();

  constructor(options: FileScannerOptions) {
    this.#options = options;
  }

  /** Scans all manifests of a directory, or the single manifest at the path. */
  async scan(
    path: string,
    kind: FileFacts['kind'],
    before: FileStates,
    onFound: OnFound,
    signal: AbortSignal,
  ): Promise<FolderScan> {
    const paths = kind === 'directory' ? await this.#list(path, signal) : [path];
    const files = new Map<string, FileState>();
    const good = new Map<string, Uint8Array>();
    let unsettled = false;
    const changed = new Map<string, FileState>();
    for (const path of paths) {
      const known = before.get(path) ?? (await this.#fromCheckpoint(path, signal));
      const checked = await this.#check(path, known, signal);
      if (checked === 'unsettled') unsettled = true;
      const state = checked === 'unsettled' ? known : checked?.state;
      if (state !== undefined) files.set(path, state);
      if (typeof checked === 'object' && checked.good !== undefined) good.set(path, checked.good);
      if (state === undefined || before.has(path)) continue;
      changed.set(path, state);
      // `onFound` is called only when the number of new files is a power of two, so that the work
      // stays linear in the number of files.
      if (isPowerOfTwo(changed.size)) onFound(new Map([...before, ...changed]));
    }
    const disappeared = [...before].filter(([path, { pods }]) => pods.length > 0 && !files.has(path));
    return { files, disappeared: disappeared.map(([path]) => path), unsettled, good };
  }

  async #list(path: string, signal: AbortSignal): Promise<readonly string[]> {
    const { files, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `list the manifests in ${path}` };
    const names = await withDeadline(deadline, () => files.list(path), signal);
    return names
      .filter(isManifestName)
      .sort()
      .map((name) => posix.join(path, name));
  }

  /**
   * Restores the state of the file from the last good content, which a previous kubelet process
   * saved.
   */
  async #fromCheckpoint(path: string, signal: AbortSignal): Promise<FileState | undefined> {
    const { lastGood, reader, nodeName, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `read the checkpoint of ${path}` };
    const bytes = await withDeadline(deadline, () => lastGood.read(path), signal);
    if (bytes === undefined) return undefined;
    const { pods, problems, complete } = await reader.read(bytes, { source: 'file', path, nodeName });
    // The empty digest makes the next scan read the file again, so that content that is no longer
    // valid is reported.
    return { digest: complete ? digestOf(bytes) : '', version: '', pods, problems };
  }

  /** Checks one file; undefined when it does not exist. A failure concerns only this file. */
  async #check(path: string, before: FileState | undefined, signal: AbortSignal): Promise<FileReading> {
    try {
      return await this.#readInTime(path, before, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `cannot be read: ${describeError(error)}`;
      return { state: this.#withProblem(path, before, { version: message, message }) };
    }
  }

  /**
   * Reads a file within the deadline. A read that hangs cannot be cancelled; a second one would
   * hang too and occupy another thread.
   */
  async #readInTime(path: string, before: FileState | undefined, signal: AbortSignal): Promise<FileReading> {
    if (this.#inFlight.has(path))
      throw new KubelingError('DEADLINE_EXCEEDED', `Cannot read the manifest within ${fileDeadlineMs} ms`);
    const deadline = { clock: this.#options.clock, ms: fileDeadlineMs, what: 'read the manifest' };
    const read = async () => {
      this.#inFlight.add(path);
      return await this.#read(path, before).finally(() => this.#inFlight.delete(path));
    };
    return await withDeadline(deadline, read, signal);
  }

  async #read(path: string, before: FileState | undefined): Promise<FileReading> {
    const { files, reader, nodeName } = this.#options;
    const facts = await files.stat(path);
    if (facts?.kind !== 'file') return undefined;
    if (facts.size >= manifestLimit)
      return {
        state: this.#withProblem(path, before, {
          version: facts.version,
          message: manifestTooLarge(facts.size),
        }),
      };
    const bytes = await files.read(path);
    if (bytes === undefined) return undefined;
    const digest = digestOf(bytes);
    if (before?.digest === digest) return { state: { ...before, version: facts.version } };
    if ((await files.stat(path))?.version !== facts.version) return 'unsettled';
    const reading = await reader.read(bytes, { source: 'file', path, nodeName });
    const pods = podsToRun(reading, before?.pods ?? []);
    const state = { digest, version: facts.version, pods, problems: reading.problems };
    return namesAllPods(reading, pods) ? { state, good: bytes } : { state };
  }

  /** Adds a problem to the state of a file; an unreadable file keeps the pods it defined before. */
  #withProblem(
    path: string,
    before: FileState | undefined,
    { version, message }: { readonly version: string; readonly message: string },
  ): FileState {
    const problems = [problemAt({ source: 'file', path }, { message })];
    return { digest: message, version, pods: before?.pods ?? [], problems };
  }
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Whether a restarted kubelet would find all retained pods in this content, even if a part of it is
 * invalid.
 */
export function namesAllPods({ complete, pods }: ManifestReading, retained: readonly ManifestPod[]): boolean {
  return complete || (pods.length > 0 && pods.length === retained.length);
}

/**
 * Combines the valid parts of a manifest with its previous pods. While any part is invalid, a pod
 * missing from the rest may still be desired, so all previous pods are kept: a mistake must not
 * stop a running pod.
 */
export function podsToRun(reading: ManifestReading, before: readonly ManifestPod[]): readonly ManifestPod[] {
  if (reading.complete) return reading.pods;
  const names = new Set(reading.pods.map(({ pod }) => fullNameOf(pod)));
  return [...reading.pods, ...before.filter(({ pod }) => !names.has(fullNameOf(pod)))];
}

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other';
  readonly size: number;
  /** Identity of the file; it does not change with the content. */
  readonly identity: string;
  /** Version of the file; changes with each write that the file system reports. */
  readonly version: string;
}

/** File access of the manifest sources. Symbolic links are followed. */
export interface ManifestFiles {
  /**
   * Returns undefined when no file or directory exists at the path; rejects with the system's error
   * when that cannot be determined.
   */
  stat(path: string): Promise<FileFacts | undefined>;
  /** Lists the names in the directory in any order; empty when the directory does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** Reads a file; undefined when it does not exist. */
  read(path: string): Promise<Uint8Array | undefined>;
  /**
   * Calls `onHint` when something may have changed at the path or directly in it; hints may be
   * spurious or missing. `onLost` reports that no further hints will follow.
   */
  watch(path: string, listener: WatchListener): Disposable;
}

export interface WatchListener {
  onHint(): void;
  onLost(error: unknown): void;
}

export function hostManifestFiles(): ManifestFiles {
  return {
    stat: (path) => unlessMissing(statFile(path), undefined),
    list: (path) => unlessMissing(readdir(path), []),
    read: (path) => unlessMissing(readFile(path), undefined),
    watch: watchHost,
  };
}

async function statFile(path: string): Promise<FileFacts> {
  const facts = await stat(path, { bigint: true });
  return {
    kind: facts.isFile() ? 'file' : facts.isDirectory() ? 'directory' : 'other',
    size: Number(facts.size),
    // The birth time is included, because the inode number of a deleted file is soon reused.
    identity: `${facts.dev}:${facts.ino}:${facts.birthtimeNs}`,
    version: `${facts.ino}:${facts.size}:${facts.mtimeNs}:${facts.ctimeNs}`,
  };
}

async function unlessMissing<T, G>(work: Promise<T>, gone: G): Promise<T | G> {
  try {
    return await work;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A directory that replaced a file during the read, or a file that replaced a directory, counts
    // as a deleted file.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return gone;
    throw error;
  }
}

/**
 * Watches the path and its parent directory, because a watch of the file itself stays on the old
 * inode when the file is replaced.
 */
function watchHost(path: string, listener: WatchListener): Disposable {
  const name = basename(path);
  const ownWatch = openWatch(path, () => true, listener);
  const parentWatch = openWatch(dirname(path), (changed) => changed === null || changed === name, listener);
  return {
    [Symbol.dispose]: () => {
      ownWatch();
      parentWatch();
    },
  };
}

function openWatch(
  path: string,
  matters: (name: string | null) => boolean,
  listener: WatchListener,
): () => void {
  try {
    const watcher = watch(path, { persistent: false }, (_event, name) => {
      if (matters(name)) listener.onHint();
    });
    watcher.on('error', (error) => listener.onLost(error));
    return () => watcher.close();
  } catch (error) {
    listener.onLost(error);
    return () => {};
  }
}
