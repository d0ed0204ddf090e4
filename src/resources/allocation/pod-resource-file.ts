import { describeError, type Logger, type WriteOptions } from '../../lib/index.ts';
import { type PodAllocation, type PodUid, sameAllocation } from '../../pods/index.ts';
import { decodeAllocations, encodeAllocations } from './checkpoint.ts';

/** The file operations for reading and writing a checkpoint. */
export interface AllocationFiles {
  /** Returns the last `maxBytes` of a regular file; undefined if the file does not exist. */
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  /** Replaces the file atomically. */
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
}

export interface PodResourceFileDeps {
  readonly path: string;
  readonly files: AllocationFiles;
  readonly logger: Logger;
  /**
   * Called after a corrupt checkpoint file was moved aside; the content of the file is then
   * restored from other sources.
   */
  readonly corrupted: (message: string) => void;
}

/** The maximum size of the file, far above what all pods of a node need. */
const largestFile = 64 * 1024 * 1024;
const mode = 0o600;

/**
 * The persisted resources of all pods, allocated or actuated. A value takes effect immediately;
 * concurrent changes are combined into one write at a time.
 */
export class PodResourceFile {
  readonly #deps: PodResourceFileDeps;
  #entries = new Map<PodUid, PodAllocation>();
  #checksum: number | undefined;
  #writing: Promise<void> | undefined;
  #isDirty = false;
  /**
   * Whether the next write must survive a power failure or only a crash of the kubelet. After a
   * power failure, the pod sources deliver a new pod again, but a changed allocation exists only in
   * this file.
   */
  #survives: 'power-cut' | 'crash' = 'crash';

  constructor(deps: PodResourceFileDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Reads the file of a previous kubelet. Call once, before any other method. Never rejects. */
  async open(): Promise<void> {
    const { path, files } = this.#deps;
    let text: string | undefined;
    try {
      text = (await files.readEnd(path, largestFile))?.toString('utf8');
    } catch (error) {
      this.#deps.corrupted(`Cannot read ${path}: ${describeError(error)}`);
    }
    if (text === undefined) return;
    const found = decodeAllocations(text);
    if (found.ok) this.#entries = new Map(found.entries);
    else await this.#setAside(text, found.why);
  }

  get(uid: PodUid): PodAllocation | undefined {
    return this.#entries.get(uid);
  }

  /** Resolves when the value is written or the write has failed; a failure is logged. */
  set(uid: PodUid, allocation: PodAllocation): Promise<void> {
    const before = this.#entries.get(uid);
    if (before !== undefined && sameAllocation(before, allocation)) return this.flushed();
    if (before !== undefined) this.#survives = 'power-cut';
    this.#entries.set(uid, allocation);
    this.#isDirty = true;
    this.#writing ??= this.#write();
    return this.#writing;
  }

  /** Resolves when all values that were set so far are written. */
  flushed(): Promise<void> {
    return this.#writing ?? Promise.resolve();
  }

  /**
   * Drops deleted pods. They are removed from the file with the next write; until then their
   * entries are harmless.
   */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of this.#entries.keys()) if (!isKept(uid)) this.#entries.delete(uid);
  }

  async #write(): Promise<void> {
    // Yields before writing, so that a batch of pods is written once.
    await Promise.resolve();
    while (this.#isDirty) {
      this.#isDirty = false;
      await this.#writeOnce();
    }
    // The write is marked as finished in the same tick as the last check for changes, so that a
    // later change starts a new write.
    this.#writing = undefined;
  }

  async #writeOnce(): Promise<void> {
    const { path, files, logger } = this.#deps;
    const { text, checksum } = encodeAllocations(this.#entries);
    const survives = this.#survives;
    if (checksum === this.#checksum) return;
    this.#survives = 'crash';
    try {
      await files.replace(path, text, { mode, survives });
      this.#checksum = checksum;
    } catch (error) {
      this.#survives = survives;
      logger.error('Failed to write pod resources; they would be lost on a restart', error, {
        path,
      });
    }
  }

  async #setAside(text: string, why: string): Promise<void> {
    const { path, files } = this.#deps;
    const aside = `${path}.corrupt`;
    const kept = await files.replace(aside, text, { mode }).then(
      () => `it was set aside as ${aside}`,
      (error: unknown) => `it could not be set aside: ${describeError(error)}`,
    );
    this.#deps.corrupted(`Cannot use the file ${path}: ${why}; ${kept}`);
  }
}
