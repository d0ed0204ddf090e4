import { backoffDelayMs, describeError, HintLatch, withDeadline } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import type { FileFacts, ManifestFiles } from './file-scan.ts';
import { FileScanner, type FileStates, type FolderScan, scanDeadlineMs } from './file-scan.ts';
import { ManifestReader } from './manifest.ts';
import { type LastGoodManifests, noLastGoodManifests } from './manifest-checkpoints.ts';
import {
  type ClaimHolders,
  type ManifestClaim,
  type ResolvedClaims,
  resolveClaims,
  StaticUids,
} from './manifest-claims.ts';
import type { ManifestSourceOptions } from './manifest-source.ts';
import { describeProblem, ProblemReporter, problemAt, type SourceProblem, withPods } from './problems.ts';

export interface FileSourceOptions extends ManifestSourceOptions {
  /** A directory of manifests, or a single one. Absolute. */
  readonly path: string;
  readonly files: ManifestFiles;
}

/** At most one look in this time, however many hints come: a file is rarely written in one go. */
const quietMs = 100;
/** How long a file, or the whole path, must be away to be believed gone: some editors take it away to put it back. */
const fileGoneMs = 10;
const pathGoneMs = 100;
const missingRetryMs = 1_000;
const failureBackoff = { baseMs: 1_000, maxMs: 20_000 };

type ScanResult =
  | { readonly kind: 'seen'; readonly scan: FolderScan }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly problem: SourceProblem };

type CompleteScan = Exclude<ScanResult, { kind: 'failed' }>;

/** Once lost it is opened anew at the next look; till then it gives what hints it can. */
interface Watch {
  readonly identity: string;
  handle: Disposable | undefined;
  state: 'standing' | 'lost';
}

interface VersionedProblem {
  readonly problem: SourceProblem;
  /** Of the file it is in. */
  readonly version: string;
}

function pathsOf(look: CompleteScan): Iterable<string> {
  return look.kind === 'seen' ? look.scan.files.keys() : [];
}

function missingPath(path: string): SourceProblem {
  const message = 'does not exist: pods it asked for are ended, and none come from it until it is back';
  return problemAt({ source: 'file', path }, { severity: 'warning', message });
}

function unconfirmedKey({ problem, version }: VersionedProblem): string {
  return `${version} ${describeProblem(problem)}`;
}

/**
 * The pods of a manifest directory. Every look is a full one: a hint from the system says when to look, never what has
 * changed. The first hint after a quiet time is followed at once.
 */
export class FileSource {
  readonly #options: FileSourceOptions;
  readonly #scanner: FileScanner;
  readonly #board: ProblemReporter;
  readonly #hints: HintLatch;
  readonly #uids: StaticUids;
  readonly #lastGood: LastGoodManifests;
  #files: FileStates = new Map();
  #holders: ClaimHolders = new Map();
  #sent: readonly Pod[] | undefined;
  /** Problems of the last look: they are told when the next one finds them again, as a half-written file is no news. */
  #unconfirmed: ReadonlySet<string> = new Set();
  #failures = 0;
  /** When the last look ended, by the monotonic clock. */
  #scannedMs = Number.NEGATIVE_INFINITY;
  #watch: Watch | undefined;
  /** Whether it was told that hints do not come. */
  #reportedUnwatched = false;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    const { files, rules, nodeName, clock } = options;
    this.#uids = options.uids ?? new StaticUids();
    this.#lastGood = options.lastGood ?? noLastGoodManifests;
    const reader = new ManifestReader(rules);
    this.#scanner = new FileScanner({ files, nodeName, reader, clock, lastGood: this.#lastGood });
    this.#board = new ProblemReporter(options.onProblem, options.onResolved);
    this.#hints = new HintLatch(options.clock);
  }

  /** What is wrong with the manifests now. */
  problems(): readonly SourceProblem[] {
    return this.#board.current;
  }

  /** Looks until the signal ends it; returns then. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const delayMs = await this.#syncOnce(signal);
        const why = await this.#hints.wait(Math.max(quietMs, delayMs), signal);
        if (why === 'hint') await this.#throttle(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#unwatch();
    }
  }

  async #throttle(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const leftMs = this.#scannedMs + quietMs - clock.monotonicMs();
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** One look and what follows from it; answers when to look again at the latest. */
  async #syncOnce(signal: AbortSignal): Promise<number> {
    this.#hints.clear();
    const look = await this.#scanConfirmed(signal);
    this.#scannedMs = this.#options.clock.monotonicMs();
    if (look.kind === 'failed') {
      this.#board.replace([...this.#board.current, look.problem]);
      return backoffDelayMs(failureBackoff, ++this.#failures);
    }
    this.#failures = 0;
    const sure = await this.#apply(look);
    if (sure === 'doubtful') return quietMs;
    return look.kind === 'missing' ? missingRetryMs : this.#options.resyncMs;
  }

  /** What is gone is looked for once more before anybody hears of it. */
  async #scanConfirmed(signal: AbortSignal): Promise<ScanResult> {
    const first = await this.#tryScan(signal);
    if (first.kind === 'failed' || !(await this.#mayHaveLostPods(first))) return first;
    await this.#options.clock.sleep(first.kind === 'missing' ? pathGoneMs : fileGoneMs, signal);
    return await this.#tryScan(signal);
  }

  /** At the first look it is what an earlier kubelet knew that counts. */
  async #mayHaveLostPods(look: CompleteScan): Promise<boolean> {
    if (this.#sent === undefined) return await this.#lastGood.hasOthersThan(pathsOf(look));
    return look.kind === 'seen' ? look.scan.lost.length > 0 : this.#sent.length > 0;
  }

  async #tryScan(signal: AbortSignal): Promise<ScanResult> {
    const { path } = this.#options;
    try {
      return await this.#scan(signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `cannot be read: ${describeError(error)}`;
      return { kind: 'failed', problem: problemAt({ source: 'file', path }, { message }) };
    }
  }

  /** The watch comes first, so that no change falls between it and the look. */
  async #scan(signal: AbortSignal): Promise<ScanResult> {
    const { path, files, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `find ${path}` };
    const facts = await withDeadline(deadline, () => files.stat(path), signal);
    this.#rewatch(facts);
    if (facts === undefined) return { kind: 'missing' };
    const scan =
      facts.kind === 'directory'
        ? await this.#scanner.folder(path, this.#files, (files) => this.#applyEarly(files), signal)
        : await this.#scanner.single(path, this.#files, signal);
    return { kind: 'seen', scan };
  }

  async #apply(look: CompleteScan): Promise<'sure' | 'doubtful'> {
    this.#files = look.kind === 'seen' ? look.scan.files : new Map();
    const settled = this.#resolve(this.#files);
    const found = [...this.#files.values()].flatMap(({ problems, pods, version }) => {
      const stoodFor = pods.map(({ pod }) => pod);
      return problems.map((problem) => ({ problem: withPods(problem, stoodFor), version }));
    });
    const repeated = settled.problems.map((problem) => ({ problem, version: '' }));
    const missing =
      look.kind === 'missing' ? [{ problem: missingPath(this.#options.path), version: '' }] : [];
    const confirmed = this.#confirm([...missing, ...found, ...repeated]);
    // First: the pods need not wait for the disk.
    this.#send(settled.pods);
    await this.#checkpoint(look);
    const unsettled = look.kind === 'seen' && look.scan.unsettled;
    return confirmed === 'all' && !unsettled ? 'sure' : 'doubtful';
  }

  /**
   * The first new pods start while the manifests of the others are still being read. Not at the first look: a list
   * that is not whole would end the pods it lacks.
   */
  #applyEarly(files: FileStates): void {
    if (this.#sent !== undefined) this.#send(this.#resolve(files).pods);
  }

  #resolve(files: FileStates): ResolvedClaims {
    const claimants: ManifestClaim[] = [...files].flatMap(([path, { pods }]) =>
      pods.map((pod) => ({ ...pod, path })),
    );
    const settled = resolveClaims(claimants, this.#holders, 'file', this.#uids);
    this.#holders = settled.holders;
    return settled;
  }

  async #checkpoint(look: CompleteScan): Promise<void> {
    const good = look.kind === 'seen' ? [...look.scan.good] : [];
    await Promise.all(good.map(([path, text]) => this.#lastGood.save(path, text)));
    await this.#lastGood.retain(pathsOf(look));
  }

  /** Only what was so a look ago, with nothing written since, is told. */
  #confirm(found: readonly VersionedProblem[]): 'all' | 'some' {
    const known = new Set(this.#board.current.map(describeProblem));
    const confirmed = found.filter(
      (one) => known.has(describeProblem(one.problem)) || this.#unconfirmed.has(unconfirmedKey(one)),
    );
    this.#unconfirmed = new Set(found.map(unconfirmedKey));
    this.#board.replace(
      confirmed.map(({ problem }) => problem),
      found.map(({ problem }) => problem),
    );
    return confirmed.length === found.length ? 'all' : 'some';
  }

  /** Unchanged files give the very same pods, so comparing the objects is enough. */
  #send(pods: readonly Pod[]): void {
    const before = this.#sent;
    if (before?.length === pods.length && pods.every((pod, index) => pod === before[index])) return;
    this.#options.setPods(pods);
    this.#sent = pods;
  }

  #rewatch(facts: FileFacts | undefined): void {
    const identity = facts?.identity ?? 'missing';
    if (this.#watch?.identity === identity && this.#watch.state === 'standing') {
      if (facts !== undefined) this.#reportWatched();
      return;
    }
    this.#unwatch();
    const watch: Watch = { identity, handle: undefined, state: 'standing' };
    this.#watch = watch;
    watch.handle = this.#options.files.watch(this.#options.path, {
      onHint: () => this.#hints.raise(),
      // It may be called before there is a handle.
      onLost: (error) => {
        watch.state = 'lost';
        // What is not there cannot be watched, and that it is not there is told already.
        if (facts !== undefined) this.#reportUnwatched(error);
      },
    });
  }

  #reportUnwatched(error: unknown): void {
    if (this.#reportedUnwatched) return;
    this.#reportedUnwatched = true;
    const { logger, path, resyncMs } = this.#options;
    logger.warn('Changes of manifests are found by looking now and then only, as they cannot be watched', {
      path,
      everyMs: resyncMs,
      error: describeError(error),
    });
  }

  /** Only of a watch that has lasted from one look to the next. */
  #reportWatched(): void {
    if (!this.#reportedUnwatched) return;
    this.#reportedUnwatched = false;
    this.#options.logger.info('Changes of manifests are watched again', { path: this.#options.path });
  }

  #unwatch(): void {
    this.#watch?.handle?.[Symbol.dispose]();
    this.#watch = undefined;
  }
}
