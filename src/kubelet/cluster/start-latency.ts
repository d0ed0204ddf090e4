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

/** Volumes that hold nothing that has to be brought along from elsewhere. */
const statelessVolumes = ['secret', 'configMap', 'downwardAPI', 'emptyDir', 'projected'] as const;

/**
 * How long pods of the API take from their creation until the API tells that all their containers run. What images and
 * init containers took is left out of one of the two figures: the node can do nothing about it. A pod is followed from
 * when it is first seen, not yet begun, until it is measured.
 */
export class StartLatency {
  readonly #clock: Clock;
  /** The pulls of each pod that is followed. */
  readonly #followed = new Map<PodUid, Interval[]>();
  readonly #total: (ms: number) => void;
  readonly #own: (ms: number) => void;

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
    this.#own = histogram(
      'kubelet_pod_start_sli_duration_seconds',
      'The same without pulls of images and init containers, for pods that keep no data.',
    );
  }

  get size(): number {
    return this.#followed.size;
  }

  /** The journal, listened to. */
  journal(journal: PodJournal): PodJournal {
    return {
      event: (pod, event) => journal.event(pod, event),
      step: (uid, step) => {
        const { stage, outcome, ms } = step;
        const toMs = this.#clock.now();
        if (stage === 'image' && outcome === 'done' && ms !== undefined)
          this.#followed.get(uid)?.push({ fromMs: toMs - ms, toMs });
        journal.step(uid, step);
      },
    };
  }

  /** The pod as the API has it now. */
  seen(pod: Pod): void {
    const { uid } = pod.metadata;
    const pulls = this.#followed.get(uid);
    if (isTerminalPhase(pod.status.phase)) this.#followed.delete(uid);
    else if (pulls !== undefined) this.#look(pod, pulls);
    else if (pod.status.startTime === undefined) this.#followed.set(uid, []);
  }

  gone(uid: PodUid): void {
    this.#followed.delete(uid);
  }

  /** The complete list: what is not on it is gone. */
  listed(pods: readonly Pod[]): void {
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#followed.keys()) if (!there.has(uid)) this.#followed.delete(uid);
    for (const pod of pods) this.seen(pod);
  }

  #look(pod: Pod, pulls: readonly Interval[]): void {
    const { containerStatuses = [] } = pod.status;
    if (containerStatuses.length === 0 || !containerStatuses.every(isRunning)) return;
    this.#followed.delete(pod.metadata.uid);
    const totalMs = this.#clock.now() - Date.parse(pod.metadata.creationTimestamp ?? '');
    if (Number.isNaN(totalMs)) return;
    this.#total(totalMs);
    if (!isStateful(pod)) this.#own(totalMs - coveredMs(pulls) - initMs(pod));
  }
}

function isRunning({ state }: ContainerStatus): boolean {
  return state?.running?.startedAt !== undefined;
}

function isStateful({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some((volume) => statelessVolumes.every((kind) => volume[kind] === undefined));
}

/** What lies in several of them counts once. */
function coveredMs(intervals: readonly Interval[]): number {
  let [total, untilMs] = [0, Number.NEGATIVE_INFINITY];
  for (const { fromMs, toMs } of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    total += Math.max(0, toMs - Math.max(fromMs, untilMs));
    untilMs = Math.max(untilMs, toMs);
  }
  return total;
}

/** Those that have to end before the others begin run one after the other. */
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
