import { exponentialBuckets, type MetricRegistry } from '../lib/index.ts';
import type { Transition } from './lifecycle.ts';
import type { UpdateType } from './updates.ts';

/** Observes the pod workers for metrics. Its methods must not throw. */
export interface WorkerObserver {
  /**
   * Called when a worker has handled an update; `operation` is `terminated` when the pod has
   * finished.
   */
  worked(operation: UpdateType | 'terminated', ms: number): void;
  /** Called when the first sync of a pod begins. */
  started(containers: number, ms: number): void;
  entered(transition: Transition): void;
  rejected(transition: Transition): void;
}

/** The default histogram buckets of Prometheus. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Creates the observer with the metric names of the Go kubelet. */
export function workerMetrics(registry: MetricRegistry): WorkerObserver {
  const duration = registry.histogram({
    name: 'kubelet_pod_worker_duration_seconds',
    help: 'Time from a change to a pod to the end of the work on it, by what changed.',
    labels: ['operation_type'],
    buckets: defaultBuckets,
  });
  const startDuration = registry
    .histogram({
      name: 'kubelet_pod_worker_start_duration_seconds',
      help: 'Time from first seeing a pod to starting work on it.',
      buckets: defaultBuckets,
    })
    .with({});
  const containers = registry
    .histogram({
      name: 'kubelet_containers_per_pod_count',
      help: 'Containers of each pod that was started.',
      buckets: exponentialBuckets(1, 2, 5),
    })
    .with({});
  const transitions = registry.counter({
    name: 'kubeling_pod_worker_transitions_total',
    help: 'Transitions of pod workers from one lifecycle state to the next.',
    labels: ['from', 'to'],
  });
  const refusals = registry.counter({
    name: 'kubeling_pod_worker_refused_transitions_total',
    help: 'Rejected invalid transitions of pod workers; each is a bug.',
    labels: ['from', 'to'],
  });
  return {
    worked: (operation_type, ms) => duration.with({ operation_type }).observe(ms / 1_000),
    started: (count, ms) => {
      containers.observe(count);
      startDuration.observe(ms / 1_000);
    },
    entered: ({ from, to }) => transitions.with({ from, to }).inc(),
    rejected: ({ from, to }) => refusals.with({ from, to }).inc(),
  };
}
