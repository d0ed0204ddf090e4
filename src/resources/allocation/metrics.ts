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

/** Told what becomes of resizes, to be counted. Never throws. */
export interface ResizeObserver {
  requested(resize: RequestedResize): void;
  infeasible(detail: string): void;
  /** One that had to wait is taken after all. */
  acceptedAfterWaiting(trigger: ResizeTrigger): void;
}

/** How many there are at the moment. */
export interface ResizeCounts {
  readonly pending: ReadonlyMap<string, number>;
  readonly inProgress: number;
}

/** Make one for a registry; the names are those dashboards know. */
export function resizeMetrics(registry: MetricRegistry, counts: () => ResizeCounts): ResizeObserver {
  const requested = registry.counter({
    name: 'kubelet_container_requested_resizes_total',
    help: 'Changes of resources that were asked for, each resource of each container by itself.',
    labels: ['resource', 'requirement', 'operation'],
  });
  const infeasible = registry.counter({
    name: 'kubelet_pod_infeasible_resizes_total',
    help: 'Resizes that this node can never do, by what keeps it from it.',
    labels: ['reason_detail'],
  });
  const accepted = registry.counter({
    name: 'kubelet_pod_deferred_accepted_resizes_total',
    help: 'Resizes that were taken after they had to wait, by what made them be looked at again.',
    labels: ['retry_trigger'],
  });
  registry.collect(() => {
    const { pending, inProgress } = counts();
    return [
      {
        name: 'kubelet_pod_pending_resizes',
        help: 'Resizes that wait, by reason.',
        type: 'gauge',
        samples: ['Deferred', 'Infeasible'].map((reason) => ({
          labels: { reason: reason.toLowerCase() },
          value: pending.get(reason) ?? 0,
        })),
      },
      {
        name: 'kubelet_pod_in_progress_resizes',
        help: 'Resizes that are being done.',
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
