import type { CriClient, Ingest } from '../../cri/index.ts';
import { type Clock, cancelledError, isKind } from '../../lib/index.ts';

export interface IngestWatcherDeps {
  readonly cri: Pick<CriClient, 'containerdIngests' | 'containerdContentOf'>;
  readonly clock: Clock;
}

/** How much has come since somebody began to look. */
export interface DownloadProgress {
  readonly bytes: number;
  /** As far as known now: more may turn out to be needed. */
  readonly totalBytes: number;
  /** Whether something is on its way at this moment; if not, what came is being unpacked. */
  readonly state: 'arriving' | 'arrived';
  /** When it last got on, on the monotonic clock. */
  readonly changedMs: number;
  /** Whether all of it is of this image, or what others bring at the same time is in it. */
  readonly of: 'this-image' | 'all-images';
}

const pollMs = 500;

/** Sees what the runtime is bringing in, while somebody looks. At runtimes that do not tell nothing is ever seen. */
export class IngestWatcher {
  readonly #deps: IngestWatcherDeps;
  readonly #downloads = new Set<ImageDownload>();
  #polling: AbortController | undefined;
  #support: 'unknown' | 'none' = 'unknown';

  constructor(deps: IngestWatcherDeps) {
    this.#deps = deps;
  }

  /** At what comes of a repository. Must be disposed of. */
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
    this.#polling?.abort(cancelledError('Nobody looks any more'));
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

  /** Asked only when something comes of which it is not known whose it is: the answer takes the runtime some work. */
  async #assignContent(ingests: readonly Ingest[], signal: AbortSignal): Promise<void> {
    const looks = [...this.#downloads];
    const isKnown = ({ ref }: Ingest) => looks.some((look) => look.owns(ref));
    if (ingests.every(isKnown)) return;
    for (const look of looks)
      look.setOwnDigests(await this.#deps.cri.containerdContentOf(look.repository, signal));
  }

  #besides(look: ImageDownload): readonly ImageDownload[] {
    return [...this.#downloads].filter((other) => other !== look);
  }

  async #sample(signal: AbortSignal): Promise<void> {
    try {
      const ingests = await this.#deps.cri.containerdIngests(signal);
      await this.#assignContent(ingests, signal);
      for (const look of this.#downloads) look.sample(ingests, this.#besides(look));
    } catch (error) {
      signal.throwIfAborted();
      // One that does not answer now may do so next time.
      if (isKind(error, 'Unsupported')) this.#support = 'none';
    }
  }
}

interface Part {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What came in since the look began. */
export class ImageDownload implements Disposable {
  readonly repository: string;
  readonly #clock: Clock;
  readonly #end: () => void;
  readonly #parts = new Map<string, Part>();
  #arriving = 0;
  /** Digests of the repository, once they are wanted. */
  #own: ReadonlySet<string> | undefined;
  /** Whether it ever came together with what others look at. */
  #isMixed = false;
  /** Whether it did so when it was last seen. */
  #isShared = false;
  #changedMs: number;

  constructor(repository: string, clock: Clock, end: () => void) {
    this.repository = repository;
    this.#clock = clock;
    this.#end = end;
    this.#changedMs = clock.monotonicMs();
  }

  /** Undefined as long as nothing was seen. */
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
    // Of what is not on its way any more nobody can tell whose it was.
    if (this.#own === undefined && this.#isMixed) this.#parts.clear();
    const now = new Map(ingests.map((each) => [each.ref, each]));
    // What is not on its way any more has come as a whole.
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

/** A ref says what kind of content it is, then its digest. */
function digestOf(ref: string): string {
  return ref.slice(ref.indexOf('-') + 1);
}
