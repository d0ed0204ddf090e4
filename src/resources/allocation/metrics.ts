import type { MetricRegistry } from '../../lib/index.ts';

export type ResizeTrigger =
  | 'pod_resized'
  | 'pod_updated'
  | 'pods_added'
  | 'pods_removed'
  | 'pod_terminated'
  | 'periodic_retry';

export interface RequestedResize {
  readonly resource: 'cpu' | 'memory';
  readonly requirement: 'requests' | 'limits';
  readonly operation: 'add' | 'remove' | 'increase' | 'decrease';
}

/** Observes the results of resizes for metrics. Never throws. */
export interface ResizeObserver {
  requested(resize: RequestedResize): void;
  infeasible(detail: string): void;
  /** Counts a deferred resize that was allocated. */
  acceptedAfterWaiting(trigger: ResizeTrigger): void;
}

/** Sets the current number of resizes. */
export interface ResizeCounts {
  readonly pending: ReadonlyMap<string, number>;
  readonly inProgress: number;
}

/** Registers the metrics of resizes; call once per registry. */
export function resizeMetrics(registry: MetricRegistry, counts: () => ResizeCounts): ResizeObserver {
  const requested = registry.counter({
    name: 'kubelet_container_requested_resizes_total',
    help: 'Requested resizes of container resources, one per changed resource.',
    labels: ['resource', 'requirement', 'operation'],
  });
  const infeasible = registry.counter({
    name: 'kubelet_pod_infeasible_resizes_total',
    help: 'Resizes that are infeasible on this node, by reason.',
    labels: ['reason_detail'],
  });
  const accepted = registry.counter({
    name: 'kubelet_pod_deferred_accepted_resizes_total',
    help: 'Resizes that were allocated after being deferred, by the trigger of the retry.',
    labels: ['retry_trigger'],
  });
  registry.collect(() => {
    const { pending, inProgress } = counts();
    return [
      {
        name: 'kubelet_pod_pending_resizes',
        help: 'Pending resizes by reason.',
        type: 'gauge',
        samples: ['Deferred', 'Infeasible'].map((reason) => ({
          labels: { reason: reason.toLowerCase() },
          value: pending.get(reason) ?? 0,
        })),
      },
      {
        name: 'kubelet_pod_in_progress_resizes',
        help: 'Resizes in progress.',
        type: 'gauge',
        samples: [{ labels: {}, value: inProgress }],
      },
    ];
  });
  return {
    requested: ({ resource, requirement, operation }) =>
      requested.with({ resource, requirement, operation }).inc(),
    infeasible: (detail) => infeasible.with({ reason_detail: detail }).inc(),
    acceptedAfterWaiting: (trigger) => accepted.with({ retry_trigger: trigger }).inc(),
  };
}
