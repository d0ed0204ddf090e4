import { backoffDelayMs, describeError, HintLatch, withDeadline } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import type { FileFacts, ManifestFiles } from './file-scan.ts';
import { FileScanner, type FileStates, type FolderScan, type OnFound, scanDeadlineMs } from './file-scan.ts';
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
  /** An absolute path: a directory of manifests, or a single manifest. */
  readonly path: string;
  readonly files: ManifestFiles;
}

/** Minimum interval between two scans, because a file is rarely written by a single write. */
const debounceMs = 100;
/**
 * Time for which a file, or the manifest path, must be missing before it counts as deleted: some
 * editors delete and recreate a file.
 */
const fileGoneMs = 10;
const pathGoneMs = 100;
const missingRetryMs = 1_000;
const failureBackoff = { baseMs: 1_000, maxMs: 20_000 };

type ScanResult =
  | { readonly kind: 'seen'; readonly scan: FolderScan }
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed'; readonly problem: SourceProblem };

type CompleteScan = Exclude<ScanResult, { kind: 'failed' }>;

/**
 * The watch of the manifest path. A lost watch is reopened by the next scan; until then it may
 * still deliver hints.
 */
interface Watch {
  readonly identity: string;
  handle: Disposable | undefined;
  state: 'standing' | 'lost';
}

interface VersionedProblem {
  readonly problem: SourceProblem;
  /** Version of the file in which the problem was found. */
  readonly version: string;
}

function pathsOf(scan: CompleteScan): Iterable<string> {
  return scan.kind === 'seen' ? scan.scan.files.keys() : [];
}

function missingPath(path: string): SourceProblem {
  const message =
    'does not exist: its pods are terminated, and no static pods run from it until it exists again';
  return problemAt({ source: 'file', path }, { severity: 'warning', message });
}

function unconfirmedKey({ problem, version }: VersionedProblem): string {
  return `${version} ${describeProblem(problem)}`;
}

/**
 * Source of the static pods of a manifest directory. A hint of the file system only triggers a
 * scan, and every scan checks all files. The first hint after a quiet period triggers a scan
 * immediately.
 */
export class FileSource {
  readonly #options: FileSourceOptions;
  readonly #scanner: FileScanner;
  readonly #problems: ProblemReporter;
  readonly #hints: HintLatch;
  readonly #uids: StaticUids;
  readonly #lastGood: LastGoodManifests;
  #files: FileStates = new Map();
  #holders: ClaimHolders = new Map();
  #sent: readonly Pod[] | undefined;
  /**
   * Problems found by the last scan. They are reported when the next scan confirms them, because a
   * half-written file is no problem.
   */
  #unconfirmed: ReadonlySet<string> = new Set();
  #failures = 0;
  /** End of the last scan, on the monotonic clock. */
  #scannedMs = Number.NEGATIVE_INFINITY;
  #watch: Watch | undefined;
  /** Whether the loss of the file watch was logged. */
  #reportedUnwatched = false;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    const { files, rules, nodeName, clock } = options;
    this.#uids = options.uids ?? new StaticUids();
    this.#lastGood = options.lastGood ?? noLastGoodManifests;
    const reader = new ManifestReader(rules);
    this.#scanner = new FileScanner({ files, nodeName, reader, clock, lastGood: this.#lastGood });
    this.#problems = new ProblemReporter(options.onProblem, options.onResolved);
    this.#hints = new HintLatch(options.clock);
  }

  /** The current problems of the manifests, as reported. */
  problems(): readonly SourceProblem[] {
    return this.#problems.current;
  }

  /** Runs the source; resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const delayMs = await this.#syncOnce(signal);
        const why = await this.#hints.wait(Math.max(debounceMs, delayMs), signal);
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
    const leftMs = this.#scannedMs + debounceMs - clock.monotonicMs();
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /**
   * Scans once and applies the result; returns the maximum number of milliseconds until the next
   * scan.
   */
  async #syncOnce(signal: AbortSignal): Promise<number> {
    this.#hints.clear();
    const scan = await this.#scanConfirmed(signal);
    this.#scannedMs = this.#options.clock.monotonicMs();
    if (scan.kind === 'failed') {
      this.#problems.replace([...this.#problems.current, scan.problem]);
      return backoffDelayMs(failureBackoff, ++this.#failures);
    }
    this.#failures = 0;
    const certainty = await this.#apply(scan);
    if (certainty === 'doubtful') return debounceMs;
    return scan.kind === 'missing' ? missingRetryMs : this.#options.resyncMs;
  }

  /** Scans, and confirms missing files with a second scan before their pods are removed. */
  async #scanConfirmed(signal: AbortSignal): Promise<ScanResult> {
    const first = await this.#tryScan(signal);
    if (first.kind === 'failed' || !(await this.#mayHaveLostPods(first))) return first;
    await this.#options.clock.sleep(first.kind === 'missing' ? pathGoneMs : fileGoneMs, signal);
    return await this.#tryScan(signal);
  }

  /**
   * Whether the scan would remove pods because manifest files have disappeared. The first scan of
   * this process is compared with the manifest files of the previous process.
   */
  async #mayHaveLostPods(scan: CompleteScan): Promise<boolean> {
    if (this.#sent === undefined) return await this.#lastGood.hasOthersThan(pathsOf(scan));
    return scan.kind === 'seen' ? scan.scan.disappeared.length > 0 : this.#sent.length > 0;
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

  /** Opens the watch before scanning, so that no change is missed between the two. */
  async #scan(signal: AbortSignal): Promise<ScanResult> {
    const { path, files, clock } = this.#options;
    const deadline = { clock, ms: scanDeadlineMs, what: `find ${path}` };
    const facts = await withDeadline(deadline, () => files.stat(path), signal);
    this.#rewatch(facts);
    if (facts === undefined) return { kind: 'missing' };
    const onFound: OnFound = (files) => (facts.kind === 'directory' ? this.#applyEarly(files) : undefined);
    const scan = await this.#scanner.scan(path, facts.kind, this.#files, onFound, signal);
    return { kind: 'seen', scan };
  }

  async #apply(scan: CompleteScan): Promise<'sure' | 'doubtful'> {
    this.#files = scan.kind === 'seen' ? scan.scan.files : new Map();
    const resolved = this.#resolve(this.#files);
    const found = [...this.#files.values()].flatMap(({ problems, pods, version }) => {
      const current = pods.map(({ pod }) => pod);
      return problems.map((problem) => ({ problem: withPods(problem, current), version }));
    });
    const repeated = resolved.problems.map((problem) => ({ problem, version: '' }));
    const missing =
      scan.kind === 'missing' ? [{ problem: missingPath(this.#options.path), version: '' }] : [];
    const confirmed = this.#confirm([...missing, ...found, ...repeated]);
    // The pods are delivered before the checkpoints are saved, because they need not wait for the
    // disk.
    this.#send(resolved.pods);
    await this.#checkpoint(scan);
    const unsettled = scan.kind === 'seen' && scan.scan.unsettled;
    return confirmed === 'all' && !unsettled ? 'sure' : 'doubtful';
  }

  /**
   * Delivers new pods while the remaining manifests are still being read. The first scan delivers a
   * complete list only, because an incomplete list would remove the missing pods.
   */
  #applyEarly(files: FileStates): void {
    if (this.#sent !== undefined) this.#send(this.#resolve(files).pods);
  }

  #resolve(files: FileStates): ResolvedClaims {
    const claimants: ManifestClaim[] = [...files].flatMap(([path, { pods }]) =>
      pods.map((pod) => ({ ...pod, path })),
    );
    const resolved = resolveClaims(claimants, this.#holders, 'file', this.#uids);
    this.#holders = resolved.holders;
    return resolved;
  }

  async #checkpoint(scan: CompleteScan): Promise<void> {
    const good = scan.kind === 'seen' ? [...scan.scan.good] : [];
    await Promise.all(good.map(([path, text]) => this.#lastGood.save(path, text)));
    await this.#lastGood.retain(pathsOf(scan));
  }

  /** Reports only problems that the previous scan also found in the same version of the file. */
  #confirm(found: readonly VersionedProblem[]): 'all' | 'some' {
    const known = new Set(this.#problems.current.map(describeProblem));
    const confirmed = found.filter(
      (one) => known.has(describeProblem(one.problem)) || this.#unconfirmed.has(unconfirmedKey(one)),
    );
    this.#unconfirmed = new Set(found.map(unconfirmedKey));
    this.#problems.replace(
      confirmed.map(({ problem }) => problem),
      found.map(({ problem }) => problem),
    );
    return confirmed.length === found.length ? 'all' : 'some';
  }

  /**
   * Delivers the pods if they changed. Unchanged files yield identical pod objects, so comparing
   * references is enough.
   */
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
      // `onLost` may be called before `watch.handle` is assigned.
      onLost: (error) => {
        watch.state = 'lost';
        // A missing path cannot be watched; that it is missing is already reported.
        if (facts !== undefined) this.#reportUnwatched(error);
      },
    });
  }

  #reportUnwatched(error: unknown): void {
    if (this.#reportedUnwatched) return;
    this.#reportedUnwatched = true;
    const { logger, path, resyncMs } = this.#options;
    logger.warn('Cannot watch manifests, polling them instead', {
      path,
      everyMs: resyncMs,
      error: describeError(error),
    });
  }

  /**
   * Logs that the path is watched again; called only for a watch that lasted from one scan to the
   * next.
   */
  #reportWatched(): void {
    if (!this.#reportedUnwatched) return;
    this.#reportedUnwatched = false;
    this.#options.logger.info('Watching manifests again', { path: this.#options.path });
  }

  #unwatch(): void {
    this.#watch?.handle?.[Symbol.dispose]();
    this.#watch = undefined;
  }
}
