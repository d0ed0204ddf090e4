import { type Clock, withDeadline } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { CsiSpace, VolumeFiles } from '../../volumes/index.ts';
import type { VolumeUsage } from './node-stats.ts';

/** A volume of a pod that says how much it holds. */
export interface VolumePlace {
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
  readonly space: (place: string, signal: AbortSignal) => Promise<CsiSpace>;
  readonly files: Pick<VolumeFiles, 'usageIn'>;
  readonly placesOf: (pod: Pod) => readonly VolumePlace[];
}

interface Known {
  readonly untilMs: number;
  readonly usage: Promise<VolumeUsage | undefined>;
}

/** A volume with very many files takes long to count. */
const answerWithinMs = 30_000;

/** How much the volumes of pods hold, counted when somebody asks and at most once a period. */
export class VolumeUsages {
  readonly #deps: VolumeUsagesDeps;
  readonly #known = new Map<PodUid, Map<string, Known>>();

  constructor(deps: VolumeUsagesDeps) {
    this.#deps = deps;
  }

  /** Those that answer. */
  async of(pod: Pod, signal: AbortSignal): Promise<readonly VolumeUsage[]> {
    const places = this.#deps.placesOf(pod);
    const usages = await Promise.all(places.map((place) => this.#usageOf(pod.metadata.uid, place, signal)));
    return usages.filter((usage) => usage !== undefined);
  }

  /** Of other pods than these nothing is remembered. */
  retain(pods: readonly Pod[]): void {
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#known.keys()) if (!there.has(uid)) this.#known.delete(uid);
  }

  get size(): number {
    return this.#known.size;
  }

  /** Whoever asks meanwhile gets the same answer; one that does not come is not waited for again in this period. */
  #usageOf(uid: PodUid, place: VolumePlace, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const { clock, periodMs } = this.#deps;
    const ofPod = this.#known.get(uid) ?? new Map<string, Known>();
    this.#known.set(uid, ofPod);
    const known = ofPod.get(place.name);
    const nowMs = clock.monotonicMs();
    if (known !== undefined && nowMs < known.untilMs) return known.usage;
    const limit = { clock, ms: answerWithinMs, what: `count what is in the volume ${place.name}` };
    const usage = withDeadline(limit, (inner) => this.#count(place, inner), signal).catch(() => {
      // Whoever asked has gone, which says nothing of the volume.
      if (signal.aborted) ofPod.delete(place.name);
      return undefined;
    });
    ofPod.set(place.name, { untilMs: nowMs + periodMs, usage });
    return usage;
  }

  async #count(
    { name, directory, counts, isScratch, claim }: VolumePlace,
    signal: AbortSignal,
  ): Promise<VolumeUsage | undefined> {
    const { clock, files } = this.#deps;
    const space = await this.#deps.space(directory, signal);
    // Some drivers do not say.
    if (Object.keys(space).length === 0) return undefined;
    const used = counts === 'files' ? await files.usageIn(directory, signal) : {};
    return { ...space, ...used, atMs: clock.now(), name, isScratch, claim };
  }
}
