import { posix } from 'node:path';
import type { CriClient } from '../../../cri/index.ts';
import {
  type Clock,
  describeError,
  HintLatch,
  KubelingError,
  type Logger,
  Semaphore,
} from '../../../lib/index.ts';
import type { LogFollowers } from '../container-logs.ts';
import type { LogOwner, RotationPolicy } from './log-cleanup.ts';
import { readLogName } from './log-cleanup.ts';
import { LogGrowth } from './log-growth.ts';
import { isNoSpace, LogRotator } from './log-rotator.ts';
import type { RotationFiles } from './rotation-files.ts';

/** A container from the pod cache, with its log. */
export interface LoggingContainer {
  readonly id: string;
  readonly state: 'running' | 'ended';
  /** The path of the log; empty for a container without a log. */
  readonly logPath: string;
}

export interface ContainerLogPolicy extends RotationPolicy {
  /** The check interval of a log that does not grow. */
  readonly intervalMs: number;
  /** The maximum number of concurrent compressions. */
  readonly workers: number;
}

export interface ContainerLogManagerDeps {
  readonly cri: Pick<CriClient, 'reopenContainerLog'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RotationFiles;
  readonly policy: ContainerLogPolicy;
  readonly podLogsDir: string;
  /** The readers that follow logs; none if undefined. */
  readonly followers?: Pick<LogFollowers, 'openRemaining'> | undefined;
  /** Returns the running and exited containers of the node. */
  readonly containers: () => Iterable<LoggingContainer>;
}

interface WatchedLog {
  readonly container: LoggingContainer;
  readonly growth: LogGrowth;
  dueMs: number;
  /** The time of the last rotation by this process; undefined before the first. */
  rotatedMs: number | undefined;
  /** Whether the log directory of the exited container still has to be cleaned up. */
  cleanup: 'due' | 'done';
  /** The number of consecutive failures of checks. */
  failures: number;
  isBusy: boolean;
}

/** The interval of listing containers and checking the free disk space. */
const refreshMs = 1_000;
/**
 * The number of consecutive failures after which a failure is logged: fewer failures may only mean
 * that the container is exiting, which is observed soon afterwards.
 */
const failuresBeforeLog = 3;
/**
 * The minimum time between two rotations of a log for which the rotated files are compressed: files
 * of a log that is rotated more often are removed soon, so compressing them does not pay off.
 */
const quietMs = 2_000;
/** The free disk space below which the disk counts as full. */
const minFreeBytes = 1 << 20;
/**
 * The maximum number of concurrent rotations, so that an unresponsive runtime does not block all
 * other work.
 */
const maxRotations = 8;

/**
 * Rotates full logs of running containers, compresses rotated logs, and limits the files of each
 * container across its instances. Logs are checked according to their growth; when the disk fills
 * up, all of them are checked.
 */
export class ContainerLogManager {
  readonly #deps: ContainerLogManagerDeps;
  readonly #rotator: LogRotator;
  readonly #watched = new Map<string, WatchedLog>();
  readonly #rotations = new Semaphore(maxRotations);
  readonly #compressions: Semaphore;
  /** The paths of logs that are being compressed or are queued for compression. */
  readonly #compressing = new Set<string>();
  readonly #work = new Set<Promise<void>>();
  /** Raised when the check of a log becomes due. */
  readonly #hints: HintLatch;
  #freeBytes: number | undefined;

  constructor(deps: ContainerLogManagerDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
    this.#rotator = new LogRotator(deps);
    this.#compressions = new Semaphore(deps.policy.workers);
  }

  /** The number of logs that are being compressed or are queued for compression. */
  get compressing(): number {
    return this.#compressing.size;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let aroundAtMs = clock.monotonicMs();
    try {
      while (!signal.aborted) {
        if (clock.monotonicMs() >= aroundAtMs) {
          aroundAtMs = clock.monotonicMs() + refreshMs;
          await this.#refresh();
        }
        this.#hints.clear();
        this.#checkDue(signal);
        const next = Math.min(aroundAtMs, ...[...this.#idle()].map(({ dueMs }) => dueMs));
        await this.#hints.wait(Math.max(1, next - clock.monotonicMs()), signal).catch(() => {});
      }
    } finally {
      await Promise.all(this.#work);
    }
  }

  /** Updates the watched containers and checks the free disk space. */
  async #refresh(): Promise<void> {
    const { clock, files, policy, podLogsDir } = this.#deps;
    const nowMs = clock.monotonicMs();
    const there = new Set<string>();
    for (const container of this.#deps.containers()) {
      if (container.logPath === '') continue;
      there.add(container.id);
      this.#track(container, nowMs);
    }
    for (const id of this.#watched.keys()) if (!there.has(id)) this.#watched.delete(id);
    const freeBytes = await files.freeBytes(podLogsDir).catch(() => undefined);
    const used = (this.#freeBytes ?? 0) - (freeBytes ?? 0);
    if (freeBytes !== undefined && used >= policy.maxBytes)
      for (const watched of this.#watched.values()) watched.dueMs = Math.min(watched.dueMs, nowMs);
    this.#freeBytes = freeBytes;
    if (freeBytes !== undefined && freeBytes < minFreeBytes) await this.#freeDiskSpace();
  }

  /** On a full disk, removes the oldest file of the container with the most removable bytes. */
  async #freeDiskSpace(): Promise<void> {
    const directories = new Map<string, LoggingContainer>();
    for (const { container } of this.#watched.values())
      directories.set(posix.dirname(container.logPath), container);
    let most: { readonly directory: string; readonly owner: LogOwner; readonly bytes: number } | undefined;
    for (const [directory, container] of directories) {
      const owner = this.#ownerOf(container);
      const bytes = await this.#rotator.removableBytes(directory, owner).catch(() => 0);
      if (bytes > (most?.bytes ?? 0)) most = { directory, owner, bytes };
    }
    if (most === undefined) return;
    await this.#rotator.removeOldest(most.directory, most.owner).catch((error) => {
      this.#deps.logger.error('Failed to remove oldest container log', error);
    });
  }

  #track(container: LoggingContainer, nowMs: number): void {
    const { maxBytes, intervalMs: mostMs } = this.#deps.policy;
    const known = this.#watched.get(container.id);
    // While a log is being checked, a new state of its container is ignored; the next refresh
    // applies it.
    if (known?.container.state === container.state || known?.isBusy === true) return;
    this.#watched.set(container.id, {
      container,
      growth: known?.growth ?? new LogGrowth({ maxBytes, maxMs: mostMs }, nowMs),
      dueMs: nowMs,
      rotatedMs: known?.rotatedMs,
      cleanup: 'due',
      failures: 0,
      isBusy: false,
    });
  }

  *#idle(): Iterable<WatchedLog> {
    for (const watched of this.#watched.values()) if (!watched.isBusy) yield watched;
  }

  #checkDue(signal: AbortSignal): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const watched of this.#idle())
      if (watched.dueMs <= nowMs) this.#begin(this.#process(watched, signal));
  }

  #begin(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Checks one log and schedules its next check. Never rejects. */
  async #process(watched: WatchedLog, signal: AbortSignal): Promise<void> {
    const { clock, policy, logger } = this.#deps;
    watched.isBusy = true;
    try {
      const waitMs = await this.#check(watched, signal);
      watched.dueMs = clock.monotonicMs() + waitMs;
      watched.failures = 0;
    } catch (error) {
      watched.dueMs = clock.monotonicMs() + Math.min(refreshMs, policy.intervalMs);
      watched.failures++;
      if (signal.aborted || watched.failures !== failuresBeforeLog || !this.#isCurrent(watched)) return;
      logger.error('Failed to rotate container log', error, { path: watched.container.logPath });
    } finally {
      watched.isBusy = false;
      this.#hints.raise();
    }
  }

  #isCurrent(watched: WatchedLog): boolean {
    return this.#watched.get(watched.container.id) === watched;
  }

  /** Checks one log; returns the time until its next check. */
  async #check(watched: WatchedLog, signal: AbortSignal): Promise<number> {
    const { clock, policy } = this.#deps;
    const { container, growth } = watched;
    if (container.state === 'ended') return await this.#finish(watched, signal);
    const bytes = await this.#sizeOf(container, signal);
    if (bytes < policy.maxBytes) {
      if (watched.cleanup === 'due' && this.#isQuiet(watched)) await this.#cleanUp(watched, signal);
      return growth.sampled(bytes, clock.monotonicMs());
    }
    using _slot = await this.#rotations.acquire(container.id, signal);
    const isCalm = this.#isQuiet(watched);
    await this.#rotator.rotate(container.id, container.logPath, this.#ownerOf(container), signal);
    watched.rotatedMs = clock.monotonicMs();
    watched.cleanup = 'due';
    await this.#cleanUp(watched, signal, isCalm ? 'compress' : 'remove-only');
    return growth.rotated(bytes, clock.monotonicMs());
  }

  /** The log of an exited container does not grow, so it is cleaned up once. */
  async #finish(watched: WatchedLog, signal: AbortSignal): Promise<number> {
    await this.#cleanUp(watched, signal);
    return Number.POSITIVE_INFINITY;
  }

  #isQuiet({ rotatedMs }: WatchedLog): boolean {
    return rotatedMs === undefined || this.#deps.clock.monotonicMs() - rotatedMs >= quietMs;
  }

  /**
   * The log was removed, or not reopened after a rotation: the runtime is requested to reopen it.
   */
  async #sizeOf({ id, logPath }: LoggingContainer, signal: AbortSignal): Promise<number> {
    const { cri, files } = this.#deps;
    const found = await files.size(logPath);
    if (found !== undefined) return found;
    await cri.reopenContainerLog({ containerId: id }, signal);
    const made = await files.size(logPath);
    if (made !== undefined) return made;
    throw new KubelingError('FILE_READ', `Cannot find the log ${logPath} after the runtime reopened it`);
  }

  async #cleanUp(
    watched: WatchedLog,
    signal: AbortSignal,
    mode: 'compress' | 'remove-only' = 'compress',
  ): Promise<void> {
    const { container } = watched;
    const directory = posix.dirname(container.logPath);
    const isOwn = (path: string) => this.#compressing.has(path.replace(/\.tmp$/, ''));
    const plain = await this.#rotator.cleanUp(directory, this.#ownerOf(container), isOwn);
    if (mode === 'remove-only') return;
    watched.cleanup = 'done';
    for (const path of plain)
      if (!this.#compressing.has(path)) this.#begin(this.#compress(watched, path, signal));
  }

  /**
   * Compresses a rotated log. Never rejects: after a failure the log stays uncompressed until the
   * next attempt.
   */
  async #compress(watched: WatchedLog, path: string, signal: AbortSignal): Promise<void> {
    const { clock, logger, policy } = this.#deps;
    this.#compressing.add(path);
    try {
      using _slot = await this.#compressions.acquire(path, signal);
      await this.#compressFreeingSpace(watched.container, path, signal);
    } catch (error) {
      if (signal.aborted) return;
      watched.cleanup = 'due';
      watched.dueMs = Math.min(watched.dueMs, clock.monotonicMs() + policy.intervalMs);
      logger.warn('Failed to compress container log', { path, because: describeError(error) });
    } finally {
      this.#compressing.delete(path);
    }
  }

  /**
   * Removes the oldest log when the disk lacks space for the compressed file, possibly the log to
   * compress.
   */
  async #compressFreeingSpace(container: LoggingContainer, path: string, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    try {
      await files.compress(path, signal);
    } catch (error) {
      if (!isNoSpace(error)) throw error;
      await this.#rotator.removeOldest(posix.dirname(path), this.#ownerOf(container));
      await files.compress(path, signal);
    }
  }

  /** Returns all known instances of the container, which share a log directory. */
  #ownerOf({ logPath }: LoggingContainer): LogOwner {
    const directory = posix.dirname(logPath);
    const all = [...this.#watched.values()].map(({ container }) => container);
    const instances = all.filter((each) => posix.dirname(each.logPath) === directory);
    const running = instances.find(({ state }) => state === 'running');
    return {
      running: running && instanceOf(running),
      known: new Set(instances.flatMap((each) => instanceOf(each) ?? [])),
    };
  }
}

function instanceOf({ logPath }: LoggingContainer): number | undefined {
  return readLogName({ name: posix.basename(logPath), bytes: 0 })?.instance;
}
