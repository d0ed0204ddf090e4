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

/** A container as the runtime last showed it. */
export interface LoggingContainer {
  readonly id: string;
  readonly state: 'running' | 'ended';
  /** Empty for none. */
  readonly logPath: string;
}

export interface ContainerLogPolicy extends RotationPolicy {
  /** Between two looks at a log that does not grow. */
  readonly intervalMs: number;
  /** How many files are compressed at once. */
  readonly workers: number;
}

export interface ContainerLogManagerDeps {
  readonly cri: Pick<CriClient, 'reopenContainerLog'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RotationFiles;
  readonly policy: ContainerLogPolicy;
  readonly podLogsDir: string;
  /** Those who read these logs; nobody does unless given. */
  readonly followers?: Pick<LogFollowers, 'openRemaining'> | undefined;
  /** Those that run, and those that have ended and are still there. */
  readonly containers: () => Iterable<LoggingContainer>;
}

interface WatchedLog {
  readonly container: LoggingContainer;
  readonly growth: LogGrowth;
  dueMs: number;
  /** Undefined for not in this kubelet's life. */
  rotatedMs: number | undefined;
  /** Whether files of its directory wait for being looked through. */
  cleanup: 'due' | 'done';
  /** In a row. */
  failures: number;
  isBusy: boolean;
}

/** Between two looks at the containers there are and at what is left on the disk. */
const refreshMs = 1_000;
/** A container that has just ended or gone cannot have another log; that it has is known a moment later. */
const failuresBeforeLog = 3;
/** What is written faster than this between two rotations is gone before it would be compressed. */
const quietMs = 2_000;
/** A disk with less than this left takes no more lines, or will not in a moment. */
const minFreeBytes = 1 << 20;
/** A runtime that does not answer for one container keeps no other from being rotated. */
const maxRotations = 8;

/**
 * Rotates the logs of running containers when they are full, compresses what was rotated, and keeps the files of each
 * container within bounds, whatever its instances have left. Logs are looked at by the pace they grow; a disk that
 * fills up has all of them looked at.
 */
export class ContainerLogManager {
  readonly #deps: ContainerLogManagerDeps;
  readonly #rotator: LogRotator;
  readonly #watched = new Map<string, WatchedLog>();
  readonly #rotations = new Semaphore(maxRotations);
  readonly #compressions: Semaphore;
  /** Paths that are compressed, or wait for it. */
  readonly #compressing = new Set<string>();
  readonly #work = new Set<Promise<void>>();
  /** Raised when something has become due. */
  readonly #hints: HintLatch;
  #freeBytes: number | undefined;

  constructor(deps: ContainerLogManagerDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
    this.#rotator = new LogRotator(deps);
    this.#compressions = new Semaphore(deps.policy.workers);
  }

  /** Logs that are compressed, or wait for it. */
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

  /** Who came, who went, and whether somebody fills the disk. */
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

  /** Nothing more can be logged: whoever has most of what was rotated gives its oldest file. */
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
      this.#deps.logger.error('Cannot remove the oldest log of a container', error);
    });
  }

  #track(container: LoggingContainer, nowMs: number): void {
    const { maxBytes, intervalMs: mostMs } = this.#deps.policy;
    const known = this.#watched.get(container.id);
    // What is being done about it comes first; it is met again in a moment.
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

  /** Never rejects. */
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
      logger.error('Cannot rotate the log of a container', error, { path: watched.container.logPath });
    } finally {
      watched.isBusy = false;
      this.#hints.raise();
    }
  }

  #isCurrent(watched: WatchedLog): boolean {
    return this.#watched.get(watched.container.id) === watched;
  }

  /** Answers how long to wait until the next look. */
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

  /** Of one that has ended nothing grows any more: once is enough. */
  async #finish(watched: WatchedLog, signal: AbortSignal): Promise<number> {
    await this.#cleanUp(watched, signal);
    return Number.POSITIVE_INFINITY;
  }

  #isQuiet({ rotatedMs }: WatchedLog): boolean {
    return rotatedMs === undefined || this.#deps.clock.monotonicMs() - rotatedMs >= quietMs;
  }

  /** A log that is not there was taken away, or not begun anew after it was rotated: the runtime makes another. */
  async #sizeOf({ id, logPath }: LoggingContainer, signal: AbortSignal): Promise<number> {
    const { cri, files } = this.#deps;
    const found = await files.size(logPath);
    if (found !== undefined) return found;
    await cri.reopenContainerLog({ containerId: id }, signal);
    const made = await files.size(logPath);
    if (made !== undefined) return made;
    throw new KubelingError('FILE_READ', `Cannot find the log ${logPath} though the runtime has opened it`);
  }

  async #cleanUp(
    watched: WatchedLog,
    signal: AbortSignal,
    mode: 'compress' | 'remove-only' = 'compress',
  ): Promise<void> {
    const { container } = watched;
    const directory = posix.dirname(container.logPath);
    const isOurs = (path: string) => this.#compressing.has(path.replace(/\.tmp$/, ''));
    const plain = await this.#rotator.cleanUp(directory, this.#ownerOf(container), isOurs);
    if (mode === 'remove-only') return;
    watched.cleanup = 'done';
    for (const path of plain)
      if (!this.#compressing.has(path)) this.#begin(this.#compress(watched, path, signal));
  }

  /** Never rejects: what cannot be compressed now stays as it is until the next time. */
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
      logger.warn('Cannot compress the log of a container', { path, because: describeError(error) });
    } finally {
      this.#compressing.delete(path);
    }
  }

  /** Where the disk has no room for what would take less of it, the oldest log makes some; that may be this very one. */
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

  /** All instances of the container that are there: their logs lie side by side. */
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
