import { abortable, type Clock, describeError, type Logger, LogOnce, withDeadline } from '../lib/index.ts';
import type { PodUid, RuntimePod } from '../pods/index.ts';
import type { LoopInput } from './input-mux.ts';

/** What the machine and the runtime have of pods, shortly before the decision. */
export interface CleanupSnapshot {
  /** Pods that had a worker before the snapshot began: their worker may have acted since. */
  readonly worked: ReadonlySet<PodUid>;
  readonly withCgroup: ReadonlySet<PodUid>;
  /** undefined when the runtime does not respond: then no pod counts as deleted. */
  readonly running: readonly RuntimePod[] | undefined;
  /** undefined when they cannot be listed. */
  readonly directories: readonly PodUid[] | undefined;
  /** When the snapshot was complete, by the monotonic clock. */
  readonly atMs: number;
}

export interface SnapshotDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tick: LoopInput<'tick'>;
  readonly workedPods: () => ReadonlySet<PodUid>;
  readonly podCgroups: () => Promise<ReadonlyMap<PodUid, unknown>>;
  /** Lists the pods of the runtime now. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  readonly podDirectories: () => Promise<readonly PodUid[]>;
}

const partMs = 30_000;

/**
 * Collects what housekeeping decides by beside the sync loop, which a slow runtime or disk must not
 * block. The loop reads the desired pods after the snapshot, so that a pod that was added since is
 * among them.
 */
export class CleanupSnapshots implements LoopInput<CleanupSnapshot> {
  readonly #deps: SnapshotDeps;
  readonly #troubles = new LogOnce();
  /** Requests that did not finish in time; a second one would only use more of the machine. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(deps: SnapshotDeps) {
    this.#deps = deps;
  }

  async next(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    for (;;) {
      await this.#deps.tick.next(signal);
      const snapshot = await this.#gather(signal);
      if (snapshot !== undefined) return snapshot;
    }
  }

  async #gather(signal: AbortSignal): Promise<CleanupSnapshot | undefined> {
    const { clock, workedPods, podCgroups, runningPods, podDirectories } = this.#deps;
    const worked = workedPods();
    const cgroups = await this.#look('list the cgroups of pods', podCgroups, signal);
    if (cgroups === undefined) return undefined;
    const [running, directories] = await Promise.all([
      this.#look('list the pods that run', runningPods, signal),
      this.#look('list the directories of pods', podDirectories, signal),
    ]);
    return { worked, withCgroup: new Set(cgroups.keys()), running, directories, atMs: clock.monotonicMs() };
  }

  async #look<T>(
    what: string,
    look: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const { clock, logger } = this.#deps;
    try {
      const once = (inner: AbortSignal) =>
        abortable(
          this.#once(what, () => look(inner)),
          inner,
        );
      const found = await withDeadline({ clock, ms: partMs, what }, once, signal);
      if (this.#troubles.clear(what)) logger.info(`Housekeeping can ${what} again`);
      return found;
    } catch (error) {
      signal.throwIfAborted();
      if (this.#troubles.isNew(what, describeError(error)))
        logger.error(`Housekeeping removes nothing, as it cannot ${what}`, error);
      return undefined;
    }
  }

  #once<T>(what: string, look: () => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(what) as Promise<T> | undefined;
    if (underWay !== undefined) return underWay;
    const begun = look().finally(() => this.#underWay.delete(what));
    this.#underWay.set(what, begun);
    return begun;
  }
}
