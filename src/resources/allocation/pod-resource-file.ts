import { describeError, type Logger, type WriteOptions } from '../../lib/index.ts';
import { type PodAllocation, type PodUid, sameAllocation } from '../../pods/index.ts';
import { decodeAllocations, encodeAllocations } from './checkpoint.ts';

/** The machine's files, as far as these need them. */
export interface AllocationFiles {
  /** The end of a regular file, or undefined when it is not there. */
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  /** Puts a new file in the place of the old one, in one step. */
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
}

export interface PodResourceFileDeps {
  readonly path: string;
  readonly files: AllocationFiles;
  readonly logger: Logger;
  /** A file that could not be read was set aside; what it held is found out anew. */
  readonly corrupted: (message: string) => void;
}

/** Far more than the resources of all pods of a node ever take. */
const largestFile = 64 * 1024 * 1024;
const mode = 0o600;

/**
 * The resources of all pods at one station, in a file that the next kubelet, whichever it is, goes on with. What is set
 * holds at once; one write at a time brings all that was set before it to the disk.
 */
export class PodResourceFile {
  readonly #deps: PodResourceFileDeps;
  #entries = new Map<PodUid, PodAllocation>();
  #checksum: number | undefined;
  #writing: Promise<void> | undefined;
  #isDirty = false;
  /** A newcomer is known from elsewhere after a power cut; of what has changed since it came this is all there is. */
  #survives: 'power-cut' | 'crash' = 'crash';

  constructor(deps: PodResourceFileDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Reads what an earlier kubelet has left; to be called once, before anything else. Never rejects. */
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

  /** Settles when it is on the disk, or cannot be, which is told in the log. */
  set(uid: PodUid, allocation: PodAllocation): Promise<void> {
    const before = this.#entries.get(uid);
    if (before !== undefined && sameAllocation(before, allocation)) return this.flushed();
    if (before !== undefined) this.#survives = 'power-cut';
    this.#entries.set(uid, allocation);
    this.#isDirty = true;
    this.#writing ??= this.#write();
    return this.#writing;
  }

  /** When all that was set so far is on the disk. */
  flushed(): Promise<void> {
    return this.#writing ?? Promise.resolve();
  }

  /** That a pod is gone is written with the next change of another: what is left of it does no harm until then. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of this.#entries.keys()) if (!isKept(uid)) this.#entries.delete(uid);
  }

  async #write(): Promise<void> {
    // Later than whoever comes in the same turn, so that a batch of pods is one write.
    await Promise.resolve();
    while (this.#isDirty) {
      this.#isDirty = false;
      await this.#writeOnce();
    }
    // In the same turn as the last look: who comes later begins anew.
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
      logger.error('Cannot keep the resources of pods; a later kubelet would not know of them', error, {
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
    this.#deps.corrupted(`The file ${path} cannot be used: ${why}; ${kept}`);
  }
}
