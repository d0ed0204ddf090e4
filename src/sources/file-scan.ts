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
  tooLarge,
} from './manifest.ts';
import type { LastGoodManifests } from './manifest-checkpoints.ts';
import { problemAt, type SourceProblem } from './problems.ts';

/** What is known of one file. */
export interface FileState {
  /** Of its content; another as soon as anything differs. */
  readonly digest: string;
  /** Another after each write, even of the same content. */
  readonly version: string;
  /** The pods it stands for: those it asks for now, and while it cannot be read whole those it asked for before. */
  readonly pods: readonly ManifestPod[];
  readonly problems: readonly SourceProblem[];
}

export type FileStates = ReadonlyMap<string, FileState>;

export interface FolderScan {
  readonly files: FileStates;
  /** Files that stood for pods and are not there any more. */
  readonly lost: readonly string[];
  /** Whether something was written to while it was read, and must be looked at again soon. */
  readonly unsettled: boolean;
  /** The texts that are good and were not so before. */
  readonly good: ReadonlyMap<string, Uint8Array>;
}

/** Copies that editors and package managers leave behind. */
const leftovers = /(?:~|\.bak|\.swp|\.orig|\.rpmsave)$/;

export function isManifestName(name: string): boolean {
  return !name.startsWith('.') && !leftovers.test(name);
}

/** For the list of names, and for what an earlier kubelet has kept of one file. */
export const scanDeadlineMs = 30_000;
/** For one file, after which the others get their turn. */
const fileDeadlineMs = 5_000;

/** Told of new files, beside all that were known before, while others are still to be looked at. */
export type OnFound = (files: FileStates) => void;

export interface FileScannerOptions {
  readonly clock: Clock;
  readonly files: ManifestFiles;
  readonly reader: ManifestReader;
  readonly nodeName: string;
  readonly lastGood: LastGoodManifests;
}

type FileReading = { readonly state: FileState; readonly good?: Uint8Array } | 'unsettled' | undefined;

/** Looks at all manifests there are. What was known of them before comes in, what is known now goes out. */
export class FileScanner {
  readonly #options: FileScannerOptions;
  /** Files that are being read, also those nobody waits for any more: none is read twice at a time. */
  readonly #inFlight = new Set<string>();

  constructor(options: FileScannerOptions) {
    this.#options = options;
  }

  async folder(path: string, before: FileStates, onFound: OnFound, signal: AbortSignal): Promise<FolderScan> {
    const { files, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `list the manifests in ${path}` };
    const names = (await withDeadline(deadline, () => files.list(path), signal))
      .filter(isManifestName)
      .sort();
    const paths = names.map((name) => posix.join(path, name));
    return await this.#scan(paths, before, onFound, signal);
  }

  async single(path: string, before: FileStates, signal: AbortSignal): Promise<FolderScan> {
    return await this.#scan([path], before, () => {}, signal);
  }

  async #scan(
    paths: readonly string[],
    before: FileStates,
    onFound: OnFound,
    signal: AbortSignal,
  ): Promise<FolderScan> {
    const files = new Map<string, FileState>();
    const good = new Map<string, Uint8Array>();
    let unsettled = false;
    const news = new Map<string, FileState>();
    for (const path of paths) {
      const known = before.get(path) ?? (await this.#fromCheckpoint(path, signal));
      const seen = await this.#check(path, known, signal);
      if (seen === 'unsettled') unsettled = true;
      const state = seen === 'unsettled' ? known : seen?.state;
      if (state !== undefined) files.set(path, state);
      if (typeof seen === 'object' && seen.good !== undefined) good.set(path, seen.good);
      if (state === undefined || before.has(path)) continue;
      news.set(path, state);
      // Told ever less often, so that the work grows with the files alone.
      if (isPowerOfTwo(news.size)) onFound(new Map([...before, ...news]));
    }
    const lost = [...before].filter(([path, { pods }]) => pods.length > 0 && !files.has(path));
    return { files, lost: lost.map(([path]) => path), unsettled, good };
  }

  /** What the file said when it was last good, as an earlier kubelet has kept it. */
  async #fromCheckpoint(path: string, signal: AbortSignal): Promise<FileState | undefined> {
    const { lastGood, reader, nodeName, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `read what is kept of ${path}` };
    const bytes = await withDeadline(deadline, () => lastGood.read(path), signal);
    if (bytes === undefined) return undefined;
    const { pods, problems, whole } = await reader.read(bytes, { source: 'file', path, nodeName });
    // What is no longer good by today's rules must be told when it is met again.
    return { digest: whole ? digestOf(bytes) : '', version: '', pods, problems };
  }

  /** Undefined when there is no such file. The trouble with it is its own: the others are read all the same. */
  async #check(path: string, before: FileState | undefined, signal: AbortSignal): Promise<FileReading> {
    try {
      return await this.#readInTime(path, before, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `cannot be read: ${describeError(error)}`;
      return { state: this.#withProblem(path, before, { version: message, message }) };
    }
  }

  /** A read that hangs cannot be ended; another beside it would hang as well, and hold one more thread. */
  async #readInTime(path: string, before: FileState | undefined, signal: AbortSignal): Promise<FileReading> {
    if (this.#inFlight.has(path))
      throw new KubelingError('DEADLINE_EXCEEDED', `Cannot read it within ${fileDeadlineMs} ms`);
    const deadline = { clock: this.#options.clock, ms: fileDeadlineMs, what: 'read it' };
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
        state: this.#withProblem(path, before, { version: facts.version, message: tooLarge(facts.size) }),
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

  /** What cannot be read says nothing about its pods. */
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

/** Whether the next kubelet finds in this text all the pods that are kept, even if some part of it cannot be used. */
export function namesAllPods({ whole, pods }: ManifestReading, kept: readonly ManifestPod[]): boolean {
  return whole || (pods.length > 0 && pods.length === kept.length);
}

/**
 * A mistake must not stop a pod that runs. While any part of a manifest cannot be used, nobody can tell whether a pod
 * it asked for is gone on purpose, so all of them stay; what can be used is used.
 */
export function podsToRun(reading: ManifestReading, before: readonly ManifestPod[]): readonly ManifestPod[] {
  if (reading.whole) return reading.pods;
  const names = new Set(reading.pods.map(({ pod }) => fullNameOf(pod)));
  return [...reading.pods, ...before.filter(({ pod }) => !names.has(fullNameOf(pod)))];
}

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other';
  readonly size: number;
  /** The same as long as it is the same file, whatever is written to it. */
  readonly identity: string;
  /** Another after each write, as far as the system tells. */
  readonly version: string;
}

/** What manifests are read through. Links are followed. */
export interface ManifestFiles {
  /** Undefined when there is nothing at that path; rejects with the system's error when that cannot be told. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** The names in a directory, in any order; empty when it is gone. */
  list(path: string): Promise<readonly string[]>;
  /** Undefined when it is gone. */
  read(path: string): Promise<Uint8Array | undefined>;
  /**
   * Calls back whenever something may have changed at the path or directly in it. A hint and no more: one may come for
   * nothing, and none may come for something. `onLost` says that no more hints will come.
   */
  watch(path: string, listener: WatchListener): Disposable;
}

export interface WatchListener {
  onHint(): void;
  onLost(error: unknown): void;
}

/** The files of the host. */
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
    // The number of a file that is gone is soon that of another.
    identity: `${facts.dev}:${facts.ino}:${facts.birthtimeNs}`,
    version: `${facts.ino}:${facts.size}:${facts.mtimeNs}:${facts.ctimeNs}`,
  };
}

async function unlessMissing<T, G>(work: Promise<T>, gone: G): Promise<T | G> {
  try {
    return await work;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A directory where a file was a moment ago, or the other way round, is gone as what it was.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return gone;
    throw error;
  }
}

/**
 * A file is watched through its directory: who watches the file itself keeps watching the old one when another takes
 * its place.
 */
function watchHost(path: string, listener: WatchListener): Disposable {
  const name = basename(path);
  const itself = openWatch(path, () => true, listener);
  const around = openWatch(dirname(path), (changed) => changed === null || changed === name, listener);
  return {
    [Symbol.dispose]: () => {
      itself();
      around();
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
