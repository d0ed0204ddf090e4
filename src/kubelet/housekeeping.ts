import type { PodCheckpoints, PodDirectories } from '../checkpoints/index.ts';
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
  readonly checkpoints: Pick<PodCheckpoints, 'retain' | 'directoryRemoved'>;
  /** Lists the pods from the runtime, not from a cache. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  /** Whether the runtime has proved that it delivers events. */
  readonly receivesRuntimeEvents: () => boolean;
}

const periodMs = 2_000;
const quietPeriodMs = 30_000;

/**
 * The result of the last housekeeping round: whether work was left, and how many changes were
 * reported before its snapshot.
 */
interface Round {
  readonly atMs: number;
  readonly changes: number;
  readonly result: 'settled' | 'unsettled';
}

/**
 * Runs housekeeping in three steps: collecting a snapshot outside the sync loop, deciding in one
 * iteration of the loop, and removing outside it again. A round runs every two seconds; every 30
 * seconds while nothing changes and the last round left no work.
 */
export class Housekeeping implements LoopInput<CleanupSnapshot>, AsyncDisposable {
  readonly #snapshots: CleanupSnapshots;
  readonly #directories: OrphanDirectories;
  readonly #cleanups: PodCleanups;
  readonly #deps: Pick<HousekeepingDeps, 'clock' | 'receivesRuntimeEvents'>;
  #changes = 0;
  #changesAtSnapshot = 0;
  #last: Round | undefined;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
    const { clock, pods, workers, podDirectories, cgroups, observer } = deps;
    const isDesired = (uid: PodUid) => workers.has(uid) || pods.getPodByUid(uid) !== undefined;
    const directories = new OrphanDirectories({ ...deps, directories: podDirectories, isDesired });
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
      podsWithWorker: () => workers.uids(),
      podCgroups: () => cgroups.list(),
      podDirectories: () => podDirectories.list(),
    });
  }

  /** The number of directories of deleted pods that still exist. */
  get orphanDirectories(): number {
    return this.#directories.counts.orphans;
  }

  /** Called when a pod or the desired pods have changed. */
  changed(): void {
    this.#changes++;
  }

  /** Returns the next snapshot when a round is due. */
  next(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    return this.#snapshots.next(signal);
  }

  cleanUp(found: CleanupSnapshot, signal: AbortSignal): void {
    const result = this.#cleanups.run(found, signal);
    this.#last = { atMs: this.#deps.clock.monotonicMs(), changes: this.#changesAtSnapshot, result };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanups[Symbol.asyncDispose]();
  }

  #ticks(every: LoopInput<'tick'>): LoopInput<'tick'> {
    return {
      next: async (signal) => {
        do await every.next(signal);
        while (this.#isQuiet());
        this.#changesAtSnapshot = this.#changes;
        return 'tick';
      },
    };
  }

  #isQuiet(): boolean {
    const { clock, receivesRuntimeEvents } = this.#deps;
    if (this.#last === undefined || this.#last.result === 'unsettled' || !receivesRuntimeEvents())
      return false;
    const { atMs, changes } = this.#last;
    return changes === this.#changes && clock.monotonicMs() - atMs < quietPeriodMs;
  }
}
