import type { PodCheckpoints, PodDirectories } from '../checkpoints/index.ts';
import type { NodeJournal } from '../journal/index.ts';
import {
  type Clock,
  describeError,
  formatDurationMs,
  KeyedBackoff,
  type Logger,
  type Random,
} from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';

export interface OrphanDirectoryDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly node: NodeJournal;
  readonly directories: Pick<PodDirectories, 'of' | 'remove'>;
  readonly checkpoints: Pick<PodCheckpoints, 'directoryRemoved'>;
  /** Whether the pod has a worker or a source again: then its directory is not removed. */
  readonly isDesired: (uid: PodUid) => boolean;
}

/** Describes the remaining files or mounts that block the removal. */
interface Blocked {
  readonly sinceMs: number;
  readonly why: string;
}

const retry = { baseMs: 4_000, maxMs: 300_000 };
const eventAfterMs = 10 * 60_000;

/**
 * Removes the directories of deleted pods outside the sync loop. A directory that cannot be removed
 * is retried with back-off.
 */
export class OrphanDirectories {
  readonly #deps: OrphanDirectoryDeps;
  readonly #backoff: KeyedBackoff<PodUid>;
  readonly #blocked = new Map<PodUid, Blocked>();
  readonly #removing = new Map<PodUid, Promise<void>>();

  constructor(deps: OrphanDirectoryDeps) {
    this.#deps = deps;
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** The number of orphan directories, and how many of them cannot be removed. */
  get counts(): { readonly orphans: number; readonly blocked: number } {
    return {
      orphans: new Set([...this.#blocked.keys(), ...this.#removing.keys()]).size,
      blocked: this.#blocked.size,
    };
  }

  /**
   * Starts the removals that are due. `orphans` are all current orphan directories; directories
   * that are not in it are no longer retried.
   */
  removeSoon(orphans: ReadonlySet<PodUid>, signal: AbortSignal): void {
    for (const uid of this.#blocked.keys()) if (!orphans.has(uid)) this.#removed(uid);
    for (const uid of orphans) {
      const waitMs = this.#backoff.remainingMs(uid, { nowMs: this.#deps.clock.monotonicMs() });
      if (waitMs > 0 || this.#removing.has(uid)) continue;
      const work = this.#remove(uid, signal).finally(() => this.#removing.delete(uid));
      this.#removing.set(uid, work);
    }
  }

  /** Resolves when all removals in flight have ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#removing.values());
  }

  async #remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { directories, checkpoints, isDesired } = this.#deps;
    try {
      const removal = await directories.remove(uid, () => isDesired(uid), signal);
      if (removal.kind === 'blocked') this.#removalFailed(uid, `${removal.path} ${removal.why}`);
      else {
        if (removal.kind === 'removed')
          checkpoints.directoryRemoved(uid, isDesired(uid) ? 'desired' : 'undesired');
        this.#removed(uid);
      }
    } catch (error) {
      if (!signal.aborted) this.#removalFailed(uid, describeError(error));
    }
  }

  #removalFailed(uid: PodUid, why: string): void {
    const { clock, logger, node, directories } = this.#deps;
    const nowMs = clock.monotonicMs();
    const previous = this.#blocked.get(uid);
    const sinceMs = previous?.sinceMs ?? nowMs;
    const directory = directories.of(uid);
    const retryMs = this.#backoff.fail(uid, { nowMs });
    if (previous?.why !== why)
      logger.warn('Failed to remove directory of deleted pod', {
        podUid: uid,
        directory,
        because: why,
        retryMs,
      });
    this.#blocked.set(uid, { sinceMs, why });
    if (nowMs - sinceMs < eventAfterMs) return;
    const message = `The directory ${directory} of a deleted pod could not be removed for ${formatDurationMs(eventAfterMs)}: ${why}`;
    node.problem(`directory ${uid}`, { type: 'Warning', reason: 'FailedPodDirectoryRemoval', message });
  }

  #removed(uid: PodUid): void {
    this.#backoff.delete(uid);
    if (!this.#blocked.delete(uid)) return;
    const { logger, node, directories } = this.#deps;
    logger.info('Removed directory of deleted pod after failures', { podUid: uid });
    node.recovered(`directory ${uid}`, `The directory ${directories.of(uid)} is removed now`);
  }
}
