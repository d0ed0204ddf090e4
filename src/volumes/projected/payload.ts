import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { KubelingError } from '../../lib/index.ts';

/** One file of a volume. */
export interface PayloadFile {
  readonly data: Buffer;
  /** The exact permission bits of the file. */
  readonly mode: number;
  /** The UID that owns the file; if undefined, the user of this process. */
  readonly owner?: number | undefined;
}

/** The files of a volume by their relative paths. */
export type Payload = ReadonlyMap<string, PayloadFile>;

/**
 * Limits the memory and disk used by the payload volumes of a pod: items may select one large key
 * or all labels many times, and their memory is charged to no cgroup of the pod.
 */
export class PayloadBudget {
  #bytes: number;
  /**
   * The maximum number of files and directories: each takes an inode of the node, and system calls
   * to create, compare and remove it.
   */
  #files: number;
  readonly #pod: PayloadBudget | undefined;

  private constructor(bytes: number, files: number, pod?: PayloadBudget) {
    this.#bytes = bytes;
    this.#files = files;
    this.#pod = pod;
  }

  static ofPod(): PayloadBudget {
    return new PayloadBudget(maxPodBytes, maxPodFiles);
  }

  ofVolume(): PayloadBudget {
    return new PayloadBudget(maxVolumeBytes, maxVolumeFiles, this);
  }

  /**
   * Throws VOLUME_UNUSABLE if this volume, or all volumes of its pod together, exceed the limit.
   */
  addFile(bytes: number): void {
    this.#add(bytes);
  }

  /** Throws VOLUME_UNUSABLE as `addFile` does. */
  addDirectory(): void {
    this.#add(0);
  }

  #add(bytes: number): void {
    if (this.#pod !== undefined) this.#pod.#add(bytes);
    this.#bytes -= bytes;
    this.#files--;
    if (this.#bytes >= 0 && this.#files >= 0) return;
    const [scope, maxBytes, maxFiles] =
      this.#pod === undefined
        ? (['the volumes of the pod', maxPodBytes, maxPodFiles] as const)
        : (['the volume', maxVolumeBytes, maxVolumeFiles] as const);
    throw unusable(
      `content of ${scope} must not exceed ${maxBytes / mebibyte} MiB in ${maxFiles} files and directories`,
    );
  }
}

const mebibyte = 1024 * 1024;
/**
 * The maximum size of a payload: an API server stores objects of up to 1.5 MiB, and a projected
 * volume combines several.
 */
const maxVolumeBytes = 8 * mebibyte;
const maxVolumeFiles = 16_384;
/**
 * The number of inodes of a tmpfs for a payload volume. A replaced version is kept until the next
 * write, so up to three versions exist at a time, besides the links of the volume.
 */
export const maxVolumeInodes = 4 * maxVolumeFiles + 64;
const maxPodBytes = 32 * mebibyte;
const maxPodFiles = 65_536;
const longestPath = 4096;
const longestName = 255;
/**
 * The maximum number of components of a file path: each is a directory to create, read and remove.
 * Kubernetes has no such limit.
 */
const maxSteps = 32;

/** Builds the error whose message becomes that of the volume's event. */
export function unusable(why: string, cause?: unknown): KubelingError {
  return new KubelingError('VOLUME_UNUSABLE', why, cause === undefined ? {} : { cause });
}

/**
 * Returns the payload with normalized paths in a stable order. Throws VOLUME_UNUSABLE for a path
 * that leaves the volume, uses a reserved name or leads through another file, and if the
 * directories exceed the budget.
 */
export function checkedPayload(payload: Payload, budget: PayloadBudget): Payload {
  const clean = [...payload].map(([path, file]) => [checkedPath(path), file] as const);
  const checked = new Map(clean.sort(([a], [b]) => (a < b ? -1 : 1)));
  checkParents([...checked.keys()]);
  directoriesAbove(checked.keys(), budget);
  return checked;
}

/**
 * Sorted by components, a file comes directly before the paths below it, so it is enough to compare
 * each path with the previous one.
 */
function checkParents(paths: readonly string[]): void {
  const keys = paths.map((path) => path.replaceAll('/', '\0')).sort();
  for (const [index, key] of keys.entries()) {
    const before = keys[index - 1];
    if (before === undefined || !key.startsWith(`${before}\0`)) continue;
    const [file, path] = [before, key].map((each) => each.replaceAll('\0', '/'));
    throw unusable(`invalid path: must not go through the file "${file}": ${path}`);
  }
}

/**
 * Returns each directory on the paths once. Throws VOLUME_UNUSABLE if there are more directories
 * than the budget allows.
 */
export function directoriesAbove(paths: Iterable<string>, budget?: PayloadBudget): ReadonlySet<string> {
  const directories = new Set<string>();
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const directory = path.slice(0, end);
      if (directories.has(directory)) break;
      budget?.addDirectory();
      directories.add(directory);
    }
  }
  return directories;
}

/** The names of the files and directories at the top level of the volume. */
export function topNames(payload: Payload): ReadonlyMap<string, PayloadFile> {
  return new Map([...payload].map(([path, file]) => [path.split('/')[0] ?? path, file]));
}

/** Removes empty and `.` components from a path. */
export function cleanPath(path: string): string {
  const clean = posix.normalize(path);
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean;
}

function checkedPath(path: string): string {
  if (path === '') throw unusable('invalid path: must not be empty: ""');
  if (posix.isAbsolute(path)) throw unusable(`invalid path: must be relative path: ${path}`);
  if (Buffer.byteLength(path) > longestPath) {
    throw unusable(`invalid path: must be less than or equal to ${longestPath} characters`);
  }
  const steps = path.split('/');
  if (steps.includes('..')) throw unusable(`invalid path: must not contain '..': ${path}`);
  if (steps.length > maxSteps)
    throw unusable(`invalid path: must have at most ${maxSteps} steps: ${path.slice(0, longestName)}`);
  if (steps.some((step) => Buffer.byteLength(step) > longestName)) {
    throw unusable(`invalid path: filenames must be less than or equal to ${longestName} characters`);
  }
  const clean = cleanPath(path);
  // Rejects the reserved names of a volume, which start with two dots, also after a leading `./`.
  if (clean.startsWith('..')) throw unusable(`invalid path: must not start with '..': ${path}`);
  if (clean === '.' || clean.includes('\0'))
    throw unusable(`invalid path: must name a file: ${JSON.stringify(path)}`);
  return clean;
}

export function payloadBytes(payload: Payload): number {
  return [...payload.values()].reduce((sum, { data }) => sum + data.length, 0);
}

/** Returns a digest that is equal for equal payloads only. */
export function payloadDigest(payload: Payload, more: readonly string[] = []): string {
  const hash = createHash('sha256').update(JSON.stringify(more));
  for (const [path, { data, mode, owner }] of payload) {
    hash.update(JSON.stringify([path, mode, owner ?? null, data.length])).update(data);
  }
  return hash.digest('base64');
}

/** Joins several problems to one message without duplicates. */
export function joinMessages(messages: readonly string[]): string {
  const different = [...new Set(messages)];
  return different.length === 1 ? (different[0] ?? '') : `[${different.join(', ')}]`;
}
