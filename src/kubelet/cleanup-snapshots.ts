import { abortable, type Clock, describeError, type Logger, LogOnce, withDeadline } from '../lib/index.ts';
import type { PodUid, RuntimePod } from '../pods/index.ts';
import type { LoopInput } from './input-mux.ts';

/**
 * A list of the existing pods, cgroups and directories, collected shortly before housekeeping
 * decides.
 */
export interface CleanupSnapshot {
  /**
   * Pods that had a worker before the snapshot began; the worker may have changed the pod since.
   */
  readonly withWorker: ReadonlySet<PodUid>;
  readonly withCgroup: ReadonlySet<PodUid>;
  /**
   * The pods of the runtime; undefined when the runtime does not respond: then no pod counts as
   * deleted.
   */
  readonly running: readonly RuntimePod[] | undefined;
  /** The pods that have a directory; undefined when the directories cannot be listed. */
  readonly directories: readonly PodUid[] | undefined;
  /** When the snapshot was complete, in milliseconds of the monotonic clock. */
  readonly atMs: number;
}

export interface SnapshotDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tick: LoopInput<'tick'>;
  readonly podsWithWorker: () => ReadonlySet<PodUid>;
  readonly podCgroups: () => Promise<ReadonlyMap<PodUid, unknown>>;
  /** Lists the pods from the runtime, not from a cache. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  readonly podDirectories: () => Promise<readonly PodUid[]>;
}

const partMs = 30_000;

/**
 * Collects the snapshots for housekeeping outside the sync loop, because a slow runtime or disk
 * must not block the loop. The sync loop reads the desired pods after the snapshot, so that they
 * include pods added during the snapshot.
 */
export class CleanupSnapshots implements LoopInput<CleanupSnapshot> {
  readonly #deps: SnapshotDeps;
  readonly #problems = new LogOnce();
  /**
   * Requests of the snapshot that did not finish in time. They are not repeated, because a second
   * request would only add load.
   */
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(deps: SnapshotDeps) {
    this.#deps = deps;
  }

  async next(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    for (;;) {
      await this.#deps.tick.next(signal);
      const snapshot = await this.#collect(signal);
      if (snapshot !== undefined) return snapshot;
    }
  }

  async #collect(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    const { clock, podsWithWorker, podCgroups, runningPods, podDirectories } = this.#deps;
    const withWorker = podsWithWorker();
    const cgroups = await this.#list('list the cgroups of pods', podCgroups, signal);
    if (cgroups === undefined) return undefined;
    const [running, directories] = await Promise.all([
      this.#list('list running pods', runningPods, signal),
      this.#list('list pod directories', podDirectories, signal),
    ]);
    return {
      withWorker,
      withCgroup: new Set(cgroups.keys()),
      running,
      directories,
      atMs: clock.monotonicMs(),
    };
  }

  async #list<T>(
    what: string,
    list: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const { clock, logger } = this.#deps;
    try {
      const once = (inner: AbortSignal) =>
        abortable(
          this.#once(what, () => list(inner)),
          inner,
        );
      const found = await withDeadline({ clock, ms: partMs, what }, once, signal);
      if (this.#problems.clear(what)) logger.info(`Housekeeping can ${what} again`);
      return found;
    } catch (error) {
      signal.throwIfAborted();
      if (this.#problems.isNew(what, describeError(error)))
        logger.error(`Housekeeping removes nothing: cannot ${what}`, error);
      return undefined;
    }
  }

  #once<T>(what: string, list: () => Promise<T>): Promise<T> {
    const inFlight = this.#inFlight.get(what) as Promise<T> | undefined;
    if (inFlight !== undefined) return inFlight;
    const started = list().finally(() => this.#inFlight.delete(what));
    this.#inFlight.set(what, started);
    return started;
  }
}
