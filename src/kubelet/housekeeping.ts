import type { Clock, Logger, Random } from '../lib/index.ts';
import type { PodUid, RuntimePod } from '../pods/index.ts';
import { type CleanupSnapshot, CleanupSnapshots } from './cleanup-snapshots.ts';
import type { LoopInput } from './input-mux.ts';
import type { KubeletObserver } from './metrics.ts';
import type { NodeJournal } from './node-journal.ts';
import { OrphanDirectories } from './orphan-directories.ts';
import { type CleanupDeps, PodCleanups } from './pod-cleanups.ts';
import type { PodDirectories } from './pod-files.ts';
import { ticker } from './ticker.ts';

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
}

const periodMs = 2_000;

/**
 * Housekeeping in its three parts: looking around beside the sync loop, deciding in one turn of it, and removing beside
 * it again.
 */
export class Housekeeping implements LoopInput<CleanupSnapshot>, AsyncDisposable {
  readonly #snapshots: CleanupSnapshots;
  readonly #directories: OrphanDirectories;
  readonly #cleanups: PodCleanups;

  constructor(deps: HousekeepingDeps) {
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
      tick: ticker(clock, periodMs),
      workedPods: () => workers.uids(),
      podCgroups: () => cgroups.list(),
      podDirectories: () => podDirectories.list(),
    });
  }

  /** How many directories of pods that are gone are still there. */
  get orphanDirectories(): number {
    return this.#directories.counts.orphans;
  }

  /** What there is, every other second. */
  next(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    return this.#snapshots.next(signal);
  }

  cleanUp(found: CleanupSnapshot, signal: AbortSignal): void {
    this.#cleanups.run(found, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanups[Symbol.asyncDispose]();
  }
}
