import { abortable, type Clock, describeError, type Logger, LogOnce, withDeadline } from '../lib/index.ts';
import type { PodUid, RuntimePod } from '../pods/index.ts';
import type { LoopInput } from './input-mux.ts';

/** What the machine and the runtime have of pods, as it was some moments ago. */
export interface CleanupSnapshot {
  /** Pods that had a worker before anything was looked at: what follows may be older than what their worker did. */
  readonly worked: ReadonlySet<PodUid>;
  readonly withCgroup: ReadonlySet<PodUid>;
  /** undefined when the runtime does not say: then nothing may be called gone. */
  readonly running: readonly RuntimePod[] | undefined;
  /** undefined when they cannot be read. */
  readonly directories: readonly PodUid[] | undefined;
  /** When it was complete, by the monotonic clock. */
  readonly atMs: number;
}

export interface SnapshotDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tick: LoopInput<'tick'>;
  readonly workedPods: () => ReadonlySet<PodUid>;
  readonly podCgroups: () => Promise<ReadonlyMap<PodUid, unknown>>;
  /** Asked of the runtime now. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  readonly podDirectories: () => Promise<readonly PodUid[]>;
}

const partMs = 30_000;

/**
 * Gathers what housekeeping decides by, while the sync loop goes on: a slow runtime or disk keeps nobody waiting. The
 * loop is handed the whole, and reads the desired pods after that: a pod that came since the cgroups were read is
 * among them.
 */
export class CleanupSnapshots implements LoopInput<CleanupSnapshot> {
  readonly #deps: SnapshotDeps;
  readonly #troubles = new LogOnce();
  /** Looks that did not end in time; another one beside them would only tie up more of the machine. */
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
