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

/** A volume of a pod that says how much it holds. */
export interface MeasuredDirectory {
  readonly name: string;
  readonly directory: string;
  /** Whether what is used is that of its file system, or only that of its files: others write to the same disk. */
  readonly counts: 'file-system' | 'files';
  /** Whether it goes with the pod and takes room of the disk of all pods. */
  readonly isScratch: boolean;
  readonly claim?: { readonly namespace: string; readonly name: string } | undefined;
}

export interface VolumeUsagesDeps {
  readonly clock: Clock;
  readonly periodMs: number;
  /** Of what is mounted at a place. */
  readonly space: (place: string, signal: AbortSignal) => Promise<CsiSpace>;
  readonly directories: DirectoryUsages;
  readonly placesOf: (pod: Pod) => readonly MeasuredDirectory[];
}

interface Known {
  /** When the last count began. */
  readonly beganMs: number;
  /** Resolves when it has ended, whatever came of it. */
  readonly counting: Promise<void>;
  isCounting: boolean;
  last: VolumeUsage | undefined;
  /** Nobody wants to know any more. */
  readonly end: () => void;
}

/** The volumes of a pod by their names, as they were when they were last counted. */
interface KnownPod {
  readonly spec: Pod['spec'];
  readonly volumes: Map<string, Known>;
}

/** A volume with very many files takes long to count: beyond this there is at least what was counted. */
const countWithinMs = 300_000;
/** Others may have to be counted before it. */
const giveUpAfterMs = { files: 900_000, 'file-system': 30_000 };
/** Nobody waits longer than this for a count; what was known before stands in for it. */
const patienceMs = 2_000;

/** How much the volumes of pods hold, counted when somebody asks and at most once a period. */
export class VolumeUsages {
  readonly #deps: VolumeUsagesDeps;
  readonly #known = new Map<PodUid, KnownPod>();

  constructor(deps: VolumeUsagesDeps) {
    this.#deps = deps;
  }

  /** Those of a pod at once; undefined when one of them has to be counted first. */
  peek(pod: Pod, maxAgeMs = this.#deps.periodMs): readonly VolumeUsage[] | undefined {
    const { spec, volumes } = this.#known.get(pod.metadata.uid) ?? {};
    if (volumes === undefined || spec !== pod.spec)
      return this.#deps.placesOf(pod).length === 0 ? [] : undefined;
    const usages: VolumeUsage[] = [];
    for (const known of volumes.values()) {
      if (known.isCounting || this.#ageOf(known) >= maxAgeMs) return undefined;
      if (known.last !== undefined) usages.push(known.last);
    }
    return usages;
  }

  /** Those that have answered by now, or do so soon. */
  async of(pod: Pod, signal: AbortSignal, maxAgeMs = this.#deps.periodMs): Promise<readonly VolumeUsage[]> {
    const { uid } = pod.metadata;
    const places = this.#deps.placesOf(pod);
    const { volumes: before = new Map<string, Known>() } = this.#known.get(uid) ?? {};
    const volumes = new Map(
      places.map((place) => [place.name, this.#knownOf(place, before.get(place.name), maxAgeMs)]),
    );
    for (const [name, { end }] of before) if (!volumes.has(name)) end();
    // One without any may come to have some.
    if (volumes.size > 0) this.#known.set(uid, { spec: pod.spec, volumes });
    else this.#known.delete(uid);
    const usages = [...volumes.values()].map((known) => this.#usageOf(known, signal));
    return (await Promise.all(usages)).filter((usage) => usage !== undefined);
  }

  /** Of other pods than these nothing is remembered, and nothing is counted any more. */
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

  /** What is known of it, or will be. */
  #knownOf(place: MeasuredDirectory, before: Known | undefined, maxAgeMs: number): Known {
    const isGood = before !== undefined && (before.isCounting || this.#ageOf(before) < maxAgeMs);
    return isGood ? before : this.#begin(place, before?.last);
  }

  async #usageOf(known: Known, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const leftMs = patienceMs - this.#ageOf(known);
    if (known.isCounting && leftMs > 0) await this.#patiently(known.counting, leftMs, signal);
    return known.last;
  }

  #ageOf({ beganMs }: Known): number {
    return this.#deps.clock.monotonicMs() - beganMs;
  }

  async #patiently(counting: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    using patience = new LinkedController(signal);
    using _timer = this.#deps.clock.timer(ms, () => patience.abort(cancelledError('It takes longer')));
    await abortable(counting, patience.signal).catch(() => signal.throwIfAborted());
  }

  /** It goes on whoever waits for it, as others do too. One that fails is not tried again in this period. */
  #begin(place: MeasuredDirectory, last: VolumeUsage | undefined): Known {
    const controller = new AbortController();
    const limit = {
      clock: this.#deps.clock,
      ms: giveUpAfterMs[place.counts],
      what: `count the volume ${place.name}`,
    };
    const counting = withDeadline(limit, (inner) => this.#count(place, inner), controller.signal).then(
      (usage) => this.#ended(known, usage),
      () => this.#ended(known, known.last),
    );
    const known: Known = {
      beganMs: this.#deps.clock.monotonicMs(),
      counting,
      isCounting: true,
      last,
      end: () => controller.abort(cancelledError('Nobody wants to know any more')),
    };
    return known;
  }

  #ended(known: Known, usage: VolumeUsage | undefined): void {
    known.last = usage;
    known.isCounting = false;
  }

  async #count(place: MeasuredDirectory, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const { clock } = this.#deps;
    const { name, directory, counts, isScratch, claim } = place;
    const found =
      counts === 'files' ? await this.#files(directory, signal) : await this.#deps.space(directory, signal);
    // Some drivers do not say.
    if (Object.keys(found).length === 0) return undefined;
    return { ...found, atMs: clock.now(), name, isScratch, claim };
  }

  /** What the file system itself keeps count of is the truth; how many files there are only the walk tells. */
  async #files(directory: string, signal: AbortSignal): Promise<CsiSpace> {
    const [answer] = await this.#deps.directories.usagesOf([{ path: directory }], countWithinMs, signal);
    if (answer?.kind !== 'counted') return {};
    const { space, usage, quotaBytes = usage.usedBytes } = answer;
    return { ...space, usedBytes: quotaBytes, inodesUsed: usage.inodesUsed };
  }
}
