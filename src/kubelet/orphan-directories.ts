import type { PodDirectories } from '../checkpoints/index.ts';
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
  /** Whether somebody has come to want the pod meanwhile. */
  readonly isWanted: (uid: PodUid) => boolean;
}

/** What stays in the way. */
interface Blocked {
  readonly sinceMs: number;
  readonly why: string;
}

const retry = { baseMs: 4_000, maxMs: 300_000 };
const eventAfterMs = 10 * 60_000;

/** Removes the directories of pods that are gone, beside all else. One that cannot go is tried ever more rarely. */
export class OrphanDirectories {
  readonly #deps: OrphanDirectoryDeps;
  readonly #backoff: KeyedBackoff<PodUid>;
  readonly #blocked = new Map<PodUid, Blocked>();
  readonly #removing = new Map<PodUid, Promise<void>>();

  constructor(deps: OrphanDirectoryDeps) {
    this.#deps = deps;
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
  }

  /** How many there are, and how many of them could not be removed. */
  get counts(): { readonly orphans: number; readonly blocked: number } {
    return {
      orphans: new Set([...this.#blocked.keys(), ...this.#removing.keys()]).size,
      blocked: this.#blocked.size,
    };
  }

  /** Begins with those whose time has come. `orphans` are all there are now: others are forgotten. */
  removeSoon(orphans: ReadonlySet<PodUid>, signal: AbortSignal): void {
    for (const uid of this.#blocked.keys()) if (!orphans.has(uid)) this.#gone(uid);
    for (const uid of orphans) {
      const waitMs = this.#backoff.remainingMs(uid, { nowMs: this.#deps.clock.monotonicMs() });
      if (waitMs > 0 || this.#removing.has(uid)) continue;
      const work = this.#remove(uid, signal).finally(() => this.#removing.delete(uid));
      this.#removing.set(uid, work);
    }
  }

  /** Everything that was begun has ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#removing.values());
  }

  async #remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { directories, isWanted } = this.#deps;
    try {
      const removal = await directories.remove(uid, () => isWanted(uid), signal);
      if (removal.kind === 'blocked') this.#stays(uid, `${removal.path} ${removal.why}`);
      else this.#gone(uid);
    } catch (error) {
      if (!signal.aborted) this.#stays(uid, describeError(error));
    }
  }

  #stays(uid: PodUid, why: string): void {
    const { clock, logger, node, directories } = this.#deps;
    const nowMs = clock.monotonicMs();
    const before = this.#blocked.get(uid);
    const sinceMs = before?.sinceMs ?? nowMs;
    const directory = directories.of(uid);
    const againMs = this.#backoff.fail(uid, { nowMs });
    if (before?.why !== why)
      logger.warn('The directory of a pod that is gone cannot be removed', {
        podUid: uid,
        directory,
        because: why,
        againMs,
      });
    this.#blocked.set(uid, { sinceMs, why });
    if (nowMs - sinceMs < eventAfterMs) return;
    const message = `The directory ${directory} of a pod that is gone could not be removed for ${formatDurationMs(eventAfterMs)}: ${why}`;
    node.trouble(`directory ${uid}`, { type: 'Warning', reason: 'FailedPodDirectoryRemoval', message });
  }

  #gone(uid: PodUid): void {
    this.#backoff.delete(uid);
    if (!this.#blocked.delete(uid)) return;
    const { logger, node, directories } = this.#deps;
    logger.info('The directory of a pod that is gone is out of the way', { podUid: uid });
    node.mended(`directory ${uid}`, `The directory ${directories.of(uid)} is out of the way now`);
  }
}
