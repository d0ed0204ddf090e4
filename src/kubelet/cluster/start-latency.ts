import type { ContainerStatus } from '../../kinds/index.ts';
import type { Clock, MetricRegistry } from '../../lib/index.ts';
import {
  initContainersOf,
  isSidecar,
  isTerminalPhase,
  type Pod,
  type PodJournal,
  type PodUid,
} from '../../pods/index.ts';
import { startBuckets } from '../metrics.ts';

interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Volume types whose content does not have to be attached, mounted or downloaded. */
const statelessVolumes = ['secret', 'configMap', 'downwardAPI', 'emptyDir', 'projected'] as const;

/**
 * Measures the time from the creation of a pod in the API until the API reports all its containers
 * as running. A second histogram, the SLI, excludes image pulls and init containers, which the node
 * cannot speed up. A pod is tracked from its first observation, if it has not started by then,
 * until it is measured.
 */
export class StartLatency {
  readonly #clock: Clock;
  /** The image pulls of each tracked pod. */
  readonly #tracked = new Map<PodUid, Interval[]>();
  readonly #total: (ms: number) => void;
  readonly #sli: (ms: number) => void;

  constructor(clock: Clock, registry: MetricRegistry) {
    this.#clock = clock;
    const histogram = (name: string, help: string) => {
      const series = registry.histogram({ name, help, buckets: startBuckets }).with({});
      return (ms: number) => series.observe(Math.max(0, ms) / 1_000);
    };
    this.#total = histogram(
      'kubelet_pod_start_total_duration_seconds',
      'Time from the creation of a pod to the API telling that all its containers run.',
    );
    this.#sli = histogram(
      'kubelet_pod_start_sli_duration_seconds',
      'The same without pulls of images and init containers, for pods that keep no data.',
    );
  }

  get size(): number {
    return this.#tracked.size;
  }

  /** Wraps the journal to record how long image pulls take. */
  journal(journal: PodJournal): PodJournal {
    return {
      event: (pod, event) => journal.event(pod, event),
      step: (uid, step) => {
        const { stage, outcome, ms } = step;
        const toMs = this.#clock.now();
        if (stage === 'image' && outcome === 'done' && ms !== undefined)
          this.#tracked.get(uid)?.push({ fromMs: toMs - ms, toMs });
        journal.step(uid, step);
      },
    };
  }

  /** Observes a pod as the API server returned it. */
  observe(pod: Pod): void {
    const { uid } = pod.metadata;
    const pulls = this.#tracked.get(uid);
    if (isTerminalPhase(pod.status.phase)) this.#tracked.delete(uid);
    else if (pulls !== undefined) this.#measure(pod, pulls);
    else if (pod.status.startTime === undefined) this.#tracked.set(uid, []);
  }

  remove(uid: PodUid): void {
    this.#tracked.delete(uid);
  }

  /** Observes the complete list of pods: a tracked pod that is missing in it was deleted. */
  observeAll(pods: readonly Pod[]): void {
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#tracked.keys()) if (!there.has(uid)) this.#tracked.delete(uid);
    for (const pod of pods) this.observe(pod);
  }

  #measure(pod: Pod, pulls: readonly Interval[]): void {
    const { containerStatuses = [] } = pod.status;
    if (containerStatuses.length === 0 || !containerStatuses.every(isRunning)) return;
    this.#tracked.delete(pod.metadata.uid);
    const totalMs = this.#clock.now() - Date.parse(pod.metadata.creationTimestamp ?? '');
    if (Number.isNaN(totalMs)) return;
    this.#total(totalMs);
    if (!isStateful(pod)) this.#sli(totalMs - unionMs(pulls) - initMs(pod));
  }
}

function isRunning({ state }: ContainerStatus): boolean {
  return state?.running?.startedAt !== undefined;
}

function isStateful({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some((volume) => statelessVolumes.every((kind) => volume[kind] === undefined));
}

/** The total duration of the intervals, in which overlapping intervals count once. */
function unionMs(intervals: readonly Interval[]): number {
  let [total, untilMs] = [0, Number.NEGATIVE_INFINITY];
  for (const { fromMs, toMs } of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    total += Math.max(0, toMs - Math.max(fromMs, untilMs));
    untilMs = Math.max(untilMs, toMs);
  }
  return total;
}

/** Init containers except sidecars run sequentially, so their durations add up. */
function initMs(pod: Pod): number {
  const plain = new Set(
    initContainersOf(pod)
      .filter((container) => !isSidecar(container))
      .map(({ name }) => name),
  );
  return (pod.status.initContainerStatuses ?? [])
    .filter(({ name }) => plain.has(name))
    .map(ranMs)
    .reduce((sum, ms) => sum + (Number.isNaN(ms) ? 0 : ms), 0);
}

function ranMs({ state }: ContainerStatus): number {
  const { startedAt = '', finishedAt = '' } = state?.terminated ?? {};
  return Date.parse(finishedAt) - Date.parse(startedAt);
}
