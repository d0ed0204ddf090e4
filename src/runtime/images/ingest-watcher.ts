import type { CriClient, Ingest } from '../../cri/index.ts';
import { type Clock, cancelledError, isKind } from '../../lib/index.ts';

export interface IngestWatcherDeps {
  readonly cri: Pick<CriClient, 'containerdIngests' | 'containerdContentOf'>;
  readonly clock: Clock;
}

/** The bytes received since the watch began. */
export interface DownloadProgress {
  readonly bytes: number;
  /** The total bytes known so far; it may grow when further content turns out to be needed. */
  readonly totalBytes: number;
  /** Whether ingests are active; otherwise the received content is being unpacked. */
  readonly state: 'arriving' | 'arrived';
  /** The time of the last progress, on the monotonic clock. */
  readonly changedMs: number;
  /** Whether the bytes belong only to this image or also to images that are pulled concurrently. */
  readonly of: 'this-image' | 'all-images';
}

const pollMs = 500;

/**
 * Samples the content ingests of containerd while pulls run. Other runtimes have no ingests, so no
 * progress is reported for them.
 */
export class IngestWatcher {
  readonly #deps: IngestWatcherDeps;
  readonly #downloads = new Set<ImageDownload>();
  #polling: AbortController | undefined;
  #support: 'unknown' | 'none' = 'unknown';

  constructor(deps: IngestWatcherDeps) {
    this.#deps = deps;
  }

  /** Watches the ingests of one repository until the result is disposed of. */
  watch(repository: string): ImageDownload {
    const look = new ImageDownload(repository, this.#deps.clock, () => this.#leave(look));
    this.#downloads.add(look);
    if (this.#polling === undefined && this.#support !== 'none') {
      this.#polling = new AbortController();
      void this.#poll(this.#polling.signal);
    }
    return look;
  }

  #leave(look: ImageDownload): void {
    this.#downloads.delete(look);
    if (this.#downloads.size > 0) return;
    this.#polling?.abort(cancelledError('No pull is watched any more'));
    this.#polling = undefined;
  }

  async #poll(signal: AbortSignal): Promise<void> {
    try {
      while (this.#support !== 'none') {
        await this.#deps.clock.sleep(pollMs, signal);
        await this.#sample(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /**
   * Reads the content of the repositories only when an ingest cannot be assigned otherwise, because
   * the request is expensive for the runtime.
   */
  async #assignContent(ingests: readonly Ingest[], signal: AbortSignal): Promise<void> {
    const looks = [...this.#downloads];
    const isKnown = ({ ref }: Ingest) => looks.some((look) => look.owns(ref));
    if (ingests.every(isKnown)) return;
    for (const look of looks)
      look.setOwnDigests(await this.#deps.cri.containerdContentOf(look.repository, signal));
  }

  #otherDigests(look: ImageDownload): readonly ImageDownload[] {
    return [...this.#downloads].filter((other) => other !== look);
  }

  async #sample(signal: AbortSignal): Promise<void> {
    try {
      const ingests = await this.#deps.cri.containerdIngests(signal);
      await this.#assignContent(ingests, signal);
      for (const look of this.#downloads) look.sample(ingests, this.#otherDigests(look));
    } catch (error) {
      signal.throwIfAborted();
      // A failed sample is retried; only an Unsupported error ends the polling.
      if (isKind(error, 'Unsupported')) this.#support = 'none';
    }
  }
}

interface Part {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** The content of one image received since the watch began. */
export class ImageDownload implements Disposable {
  readonly repository: string;
  readonly #clock: Clock;
  readonly #end: () => void;
  readonly #parts = new Map<string, Part>();
  #arriving = 0;
  /** The content digests of the repository; undefined until they were read. */
  #own: ReadonlySet<string> | undefined;
  /** Whether another pull was active during any sample so far. */
  #isMixed = false;
  /** Whether another pull was active during the last sample. */
  #isShared = false;
  #changedMs: number;

  constructor(repository: string, clock: Clock, end: () => void) {
    this.repository = repository;
    this.#clock = clock;
    this.#end = end;
    this.#changedMs = clock.monotonicMs();
  }

  /** Returns the progress; undefined until an ingest was sampled. */
  get progress(): DownloadProgress | undefined {
    if (this.#parts.size === 0) return undefined;
    let bytes = 0;
    let totalBytes = 0;
    for (const part of this.#parts.values()) {
      bytes += part.bytes;
      totalBytes += Math.max(part.totalBytes, part.bytes);
    }
    const state = this.#arriving > 0 ? 'arriving' : 'arrived';
    const of = this.#own === undefined && this.#isShared ? 'all-images' : 'this-image';
    return { bytes, totalBytes, state, changedMs: this.#changedMs, of };
  }

  setOwnDigests(digests: ReadonlySet<string>): void {
    if (digests.size === 0) return;
    this.#own = digests;
    for (const ref of this.#parts.keys()) if (!this.owns(ref)) this.#parts.delete(ref);
  }

  owns(ref: string): boolean {
    return this.#own?.has(digestOf(ref)) ?? false;
  }

  sample(all: readonly Ingest[], others: readonly ImageDownload[]): void {
    this.#isShared = others.length > 0;
    this.#isMixed ||= this.#isShared;
    const ingests = all.filter(({ ref }) => this.#mayOwn(ref, others));
    // Removes the bytes that were counted while other pulls were active: the finished ingests of
    // these pulls cannot be assigned to an image.
    if (this.#own === undefined && this.#isMixed) this.#parts.clear();
    const now = new Map(ingests.map((each) => [each.ref, each]));
    // An ingest that the runtime no longer lists is complete.
    for (const [ref, { totalBytes }] of this.#parts) {
      if (!now.has(ref) && totalBytes > 0) this.#set(ref, { bytes: totalBytes, totalBytes });
    }
    for (const { ref, bytes, totalBytes } of ingests) {
      if (bytes > 0 || totalBytes > 0) this.#set(ref, { bytes, totalBytes });
    }
    this.#arriving = now.size;
  }

  #mayOwn(ref: string, others: readonly ImageDownload[]): boolean {
    return this.#own === undefined ? !others.some((other) => other.owns(ref)) : this.owns(ref);
  }

  #set(ref: string, part: Part): void {
    const known = this.#parts.get(ref);
    if (known?.bytes === part.bytes && known.totalBytes === part.totalBytes) return;
    this.#parts.set(ref, part);
    this.#changedMs = this.#clock.monotonicMs();
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}

/** The reference of an ingest is the kind of content, a dash, and the digest. */
function digestOf(ref: string): string {
  return ref.slice(ref.indexOf('-') + 1);
}
