import type { PodDirectories } from '../checkpoints/index.ts';
import type { NodeJournal } from '../journal/index.ts';
import type { Clock, Logger, Random } from '../lib/index.ts';
import type { PodUid, RuntimePod } from '../pods/index.ts';
import { type CleanupSnapshot, CleanupSnapshots } from './cleanup-snapshots.ts';
import type { LoopInput } from './input-mux.ts';
import { ticker } from './input-mux.ts';
import type { KubeletObserver } from './metrics.ts';
import { OrphanDirectories } from './orphan-directories.ts';
import { type CleanupDeps, PodCleanups } from './pod-cleanups.ts';

export interface HousekeepingDeps extends Omit<CleanupDeps, 'directories' | 'observe' | 'cgroups'> {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly node: NodeJournal;
  readonly observer: Pick<KubeletObserver, 'cleanedUp' | 'orphanDirectories'>;
  readonly cgroups: CleanupDeps['cgroups'] & { list(): Promise<ReadonlyMap<PodUid, unknown>> };
  readonly podDirectories: PodDirectories;
  /** Asked of the runtime now. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  /** Whether the runtime is known to tell of what happens in it. */
  readonly hearsOfChanges: () => boolean;
}

const periodMs = 2_000;
const calmPeriodMs = 30_000;

/** The last round: whether it left anything to do, and how many changes had been told of before it looked around. */
interface Round {
  readonly atMs: number;
  readonly changes: number;
  readonly end: 'settled' | 'unsettled';
}

/**
 * Housekeeping in its three parts: looking around beside the sync loop, deciding in one turn of it, and removing beside
 * it again. Every other second; now and then while nothing happens and the last round left nothing to do.
 */
export class Housekeeping implements LoopInput<CleanupSnapshot>, AsyncDisposable {
  readonly #snapshots: CleanupSnapshots;
  readonly #directories: OrphanDirectories;
  readonly #cleanups: PodCleanups;
  readonly #deps: Pick<HousekeepingDeps, 'clock' | 'hearsOfChanges'>;
  #changes = 0;
  #changesSeen = 0;
  #last: Round | undefined;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
    const { clock, pods, workers, podDirectories, cgroups, observer } = deps;
    const isWanted = (uid: PodUid) => workers.knows(uid) || pods.getPodByUid(uid) !== undefined;
    const directories = new OrphanDirectories({ ...deps, directories: podDirectories, isWanted });
    this.#directories = directories;
    this.#cleanups = new PodCleanups({
      ...deps,
      directories,
      observe(counts) {
        observer.cleanedUp(counts);
        observer.orphanDirectories(directories.counts);
      },
    });
    this.#snapshots = new CleanupSnapshots({
      ...deps,
      tick: this.#ticks(ticker(clock, periodMs)),
      workedPods: () => workers.uids(),
      podCgroups: () => cgroups.list(),
      podDirectories: () => podDirectories.list(),
    });
  }

  /** How many directories of pods that are gone are still there. */
  get orphanDirectories(): number {
    return this.#directories.counts.orphans;
  }

  /** Something has happened to a pod, or what is wanted of it. */
  changed(): void {
    this.#changes++;
  }

  /** What there is, when it is time for a round. */
  next(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    return this.#snapshots.next(signal);
  }

  cleanUp(found: CleanupSnapshot, signal: AbortSignal): void {
    const end = this.#cleanups.run(found, signal);
    this.#last = { atMs: this.#deps.clock.monotonicMs(), changes: this.#changesSeen, end };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanups[Symbol.asyncDispose]();
  }

  #ticks(every: LoopInput<'tick'>): LoopInput<'tick'> {
    return {
      next: async (signal) => {
        do await every.next(signal);
        while (this.#isCalm());
        this.#changesSeen = this.#changes;
        return 'tick';
      },
    };
  }

  #isCalm(): boolean {
    const { clock, hearsOfChanges } = this.#deps;
    if (this.#last === undefined || this.#last.end === 'unsettled' || !hearsOfChanges()) return false;
    const { atMs, changes } = this.#last;
    return changes === this.#changes && clock.monotonicMs() - atMs < calmPeriodMs;
  }
}
