import {
  abortable,
  type Clock,
  cancelledError,
  type DirectoryUsages,
  LinkedController,
  withDeadline,
} from '../lib/index.ts';
import type { Pod, PodUid } from '../pods/index.ts';
import type { CsiSpace } from '../volumes/index.ts';
import type { VolumeUsage } from './node-stats.ts';

/** A volume whose usage is measured. */
export interface MeasuredDirectory {
  readonly name: string;
  readonly directory: string;
  /**
   * `file-system` to measure the volume's file system; `files` to count the volume's files, because
   * other data may be on the same disk.
   */
  readonly counts: 'file-system' | 'files';
  /** Whether the volume is ephemeral and on the same disk as the pod directories. */
  readonly isScratch: boolean;
  readonly claim?: { readonly namespace: string; readonly name: string } | undefined;
}

export interface VolumeUsagesDeps {
  readonly clock: Clock;
  readonly periodMs: number;
  /** Reads the space of the file system at a path. */
  readonly space: (path: string, signal: AbortSignal) => Promise<CsiSpace>;
  readonly directories: DirectoryUsages;
  readonly directoriesOf: (pod: Pod) => readonly MeasuredDirectory[];
}

interface Known {
  /** Start of the last count, on the monotonic clock. */
  readonly beganMs: number;
  /** Resolves when the count has ended; never rejects. */
  readonly counting: Promise<void>;
  isCounting: boolean;
  last: VolumeUsage | undefined;
  /** Cancels the count; called when the pod is removed. */
  readonly end: () => void;
}

/**
 * Cached volume usages of a pod by volume name, and the pod's spec at the time of the last count.
 */
interface KnownPod {
  readonly spec: Pod['spec'];
  readonly volumes: Map<string, Known>;
}

/** Time limit of a count; a volume that takes longer is counted only partly. */
const countWithinMs = 300_000;
/** Time limit of a count, including its wait for other counts. */
const giveUpAfterMs = { files: 900_000, 'file-system': 30_000 };
/** Maximum time that a caller waits; after it the previous count is returned. */
const waitMs = 2_000;

/** Measures the volumes of pods on request, at most once per period. */
export class VolumeUsages {
  readonly #deps: VolumeUsagesDeps;
  readonly #known = new Map<PodUid, KnownPod>();

  constructor(deps: VolumeUsagesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the volume stats of a pod without waiting; undefined when a volume must be counted
   * first.
   */
  peek(pod: Pod, maxAgeMs = this.#deps.periodMs): readonly VolumeUsage[] | undefined {
    const { spec, volumes } = this.#known.get(pod.metadata.uid) ?? {};
    if (volumes === undefined || spec !== pod.spec)
      return this.#deps.directoriesOf(pod).length === 0 ? [] : undefined;
    const usages: VolumeUsage[] = [];
    for (const known of volumes.values()) {
      if (known.isCounting || this.#ageOf(known) >= maxAgeMs) return undefined;
      if (known.last !== undefined) usages.push(known.last);
    }
    return usages;
  }

  /** Returns the volume stats of a pod; waits for missing ones for a limited time. */
  async of(pod: Pod, signal: AbortSignal, maxAgeMs = this.#deps.periodMs): Promise<readonly VolumeUsage[]> {
    const { uid } = pod.metadata;
    const directories = this.#deps.directoriesOf(pod);
    const { volumes: before = new Map<string, Known>() } = this.#known.get(uid) ?? {};
    const volumes = new Map(
      directories.map((directory) => [
        directory.name,
        this.#knownOf(directory, before.get(directory.name), maxAgeMs),
      ]),
    );
    for (const [name, { end }] of before) if (!volumes.has(name)) end();
    // A pod without volumes is not cached, because volumes may be added later.
    if (volumes.size > 0) this.#known.set(uid, { spec: pod.spec, volumes });
    else this.#known.delete(uid);
    const usages = [...volumes.values()].map((known) => this.#usageOf(known, signal));
    return (await Promise.all(usages)).filter((usage) => usage !== undefined);
  }

  /**
   * Drops the stats of all pods except the given ones, and cancels the counts of the dropped pods.
   */
  retain(pods: readonly Pod[]): void {
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, { volumes }] of this.#known) {
      if (there.has(uid)) continue;
      this.#known.delete(uid);
      for (const { end } of volumes.values()) end();
    }
  }

  get size(): number {
    return this.#known.size;
  }

  /** Returns the cached state of a volume, creating it when necessary. */
  #knownOf(directory: MeasuredDirectory, before: Known | undefined, maxAgeMs: number): Known {
    const isGood = before !== undefined && (before.isCounting || this.#ageOf(before) < maxAgeMs);
    return isGood ? before : this.#begin(directory, before?.last);
  }

  async #usageOf(known: Known, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const leftMs = waitMs - this.#ageOf(known);
    if (known.isCounting && leftMs > 0) await this.#patiently(known.counting, leftMs, signal);
    return known.last;
  }

  #ageOf({ beganMs }: Known): number {
    return this.#deps.clock.monotonicMs() - beganMs;
  }

  async #patiently(counting: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    using waiting = new LinkedController(signal);
    using _timer = this.#deps.clock.timer(ms, () =>
      waiting.abort(cancelledError('The count is still running')),
    );
    await abortable(counting, waiting.signal).catch(() => signal.throwIfAborted());
  }

  /**
   * Starts a count, which continues after its callers have timed out. A failed count is not retried
   * in the same period.
   */
  #begin(directory: MeasuredDirectory, last: VolumeUsage | undefined): Known {
    const controller = new AbortController();
    const limit = {
      clock: this.#deps.clock,
      ms: giveUpAfterMs[directory.counts],
      what: `count the volume ${directory.name}`,
    };
    const counting = withDeadline(limit, (inner) => this.#count(directory, inner), controller.signal).then(
      (usage) => this.#ended(known, usage),
      () => this.#ended(known, known.last),
    );
    const known: Known = {
      beganMs: this.#deps.clock.monotonicMs(),
      counting,
      isCounting: true,
      last,
      end: () => controller.abort(cancelledError('The volume is no longer measured')),
    };
    return known;
  }

  #ended(known: Known, usage: VolumeUsage | undefined): void {
    known.last = usage;
    known.isCounting = false;
  }

  async #count(measured: MeasuredDirectory, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const { clock } = this.#deps;
    const { name, directory, counts, isScratch, claim } = measured;
    const found =
      counts === 'files' ? await this.#files(directory, signal) : await this.#deps.space(directory, signal);
    // Some CSI drivers report no usage; the volume is then omitted.
    if (Object.keys(found).length === 0) return undefined;
    return { ...found, atMs: clock.now(), name, isScratch, claim };
  }

  /**
   * Counts a directory. The quota accounting of the file system gives the exact size; the number of
   * files is counted by walking the tree.
   */
  async #files(directory: string, signal: AbortSignal): Promise<CsiSpace> {
    const [result] = await this.#deps.directories.usagesOf([{ path: directory }], countWithinMs, signal);
    if (result?.kind !== 'counted') return {};
    const { space, usage, quotaBytes = usage.usedBytes } = result;
    return { ...space, usedBytes: quotaBytes, inodesUsed: usage.inodesUsed };
  }
}
