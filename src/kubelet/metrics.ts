import type { GaugeFamily, Instant, MetricRegistry } from '../lib/index.ts';
import { annotations, ephemeralContainersOf, isStaticPod, type Pod } from '../pods/index.ts';
import type { StatusChange } from '../status/index.ts';
import type { WorkerSummary } from '../workers/index.ts';
import type { CleanupCounts } from './pod-cleanups.ts';

/** Updates the metrics of the kubelet. Never throws. */
export interface KubeletObserver {
  cleanedUp(counts: CleanupCounts): void;
  /** The number of directories of deleted pods, and how many of them cannot be removed. */
  orphanDirectories(counts: { readonly orphans: number; readonly blocked: number }): void;
  rejected(reason: string): void;
  /** Records that a pod has started this long after the kubelet first observed it. */
  podStarted(ms: number): void;
  stuck(counts: { readonly busy: number; readonly missing: number }): void;
}

/** The upper bounds of the histogram buckets, in seconds. */
export const startBuckets = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700,
  3600,
];
const lifecycles = ['sync', 'terminating', 'terminated'] as const;
/**
 * The kinds of pods with a worker: desired, no longer desired (orphan), or found only in the
 * runtime.
 */
const configs = [
  ['desired', ''],
  ['desired', 'true'],
  ['orphan', ''],
  ['orphan', 'true'],
  ['runtime_only', 'unknown'],
] as const;
/**
 * Rejection reasons with their own series. Other reasons count as Other, because the number of
 * series must not grow without bound.
 */
const rejectionReasons: ReadonlySet<string> = new Set([
  'AppArmor',
  'Evicted',
  'InitContainerRestartPolicyForbidden',
  'InvalidNodeInfo',
  'NodeShutdown',
  'OutOfcpu',
  'OutOfephemeral-storage',
  'OutOfmemory',
  'OutOfpods',
  'PodFeatureUnsupported',
  'PodLevelResourcesNotSupported',
  'PodOSNotSupported',
  'PodOSSelectorNodeLabelDoesNotMatch',
  'SupplementalGroupsPolicyNotSupported',
  'SysctlForbidden',
  'TopologyAffinityError',
  'UnexpectedAdmissionError',
  'UnexpectedPredicateFailureType',
  'UnknownReason',
  'VolumeAttachmentLimitExceeded',
  "node(s) had taints that the pod didn't tolerate",
]);

/**
 * Creates the observer with the metric names of the Go kubelet. All series exist from the start of
 * the kubelet.
 */
export function kubeletMetrics(registry: MetricRegistry): KubeletObserver {
  const housekeeping = housekeepingMetrics(registry);
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with({});
  const orphans = gauge(
    'kubelet_orphan_pod_cleaned_volumes',
    'Directories of pods that are gone, in the last round of housekeeping.',
  );
  const blocked = gauge(
    'kubelet_orphan_pod_cleaned_volumes_errors',
    'Directories of pods that are gone and could not be removed.',
  );
  const rejections = registry.counter({
    name: 'kubelet_admission_rejections_total',
    help: 'Pods that were refused, by reason.',
    labels: ['reason'],
  });
  const starts = registry
    .histogram({
      name: 'kubelet_pod_start_duration_seconds',
      help: 'Time from first seeing a pod to the pod running.',
      buckets: startBuckets,
    })
    .with({});
  const busy = gauge(
    'kubeling_pod_workers_stuck',
    'Pods that one sync has been busy with for over 5 minutes.',
  );
  const missing = gauge(
    'kubeling_pods_without_worker',
    'Pods wanted for over 30 seconds that nobody works on.',
  );
  return {
    cleanedUp: housekeeping,
    orphanDirectories(counts) {
      orphans.set(counts.orphans);
      blocked.set(counts.blocked);
    },
    rejected: (reason) => rejections.with({ reason: rejectionLabel(reason) }).inc(),
    podStarted: (ms) => starts.observe(ms / 1_000),
    stuck(counts) {
      busy.set(counts.busy);
      missing.set(counts.missing);
    },
  };
}

function housekeepingMetrics(registry: MetricRegistry): KubeletObserver['cleanedUp'] {
  const byStatic = ['static'] as const;
  const desired = registry.gauge({
    name: 'kubelet_desired_pods',
    help: 'Pods that should run here; static are those that no API server has told of.',
    labels: byStatic,
  });
  const active = registry.gauge({
    name: 'kubelet_active_pods',
    help: 'Pods that count when another asks for room; static are those that no API server has told of.',
    labels: byStatic,
  });
  const mirrors = registry
    .gauge({ name: 'kubelet_mirror_pods', help: 'Mirror pods of static pods.' })
    .with({});
  const restarted = registry.counter({
    name: 'kubelet_restarted_pods_total',
    help: 'Pods that began anew as another of their UID had ended.',
    labels: byStatic,
  });
  const orphaned = registry
    .counter({
      name: 'kubelet_orphaned_runtime_pods_total',
      help: 'Pods found running that nobody wants, and ended.',
    })
    .with({});
  const reportWorkers = workingPodsMetric(registry);
  const report = (counts: Omit<CleanupCounts, 'orphanedRuntimePods'>) => {
    setByStatic(desired, counts.desired);
    setByStatic(active, counts.active);
    mirrors.set(counts.mirrors.length);
    for (const isStatic of ['', 'true'] as const)
      restarted.with({ static: isStatic }).inc(counted(counts.restarted, isStatic));
    reportWorkers(counts.workers);
  };
  report({ desired: [], active: [], mirrors: [], restarted: [], workers: new Map() });
  return (counts) => {
    report(counts);
    orphaned.inc(counts.orphanedRuntimePods);
  };
}

/** Sets a series for every state of a worker and every kind of pod, also those without a pod. */
function workingPodsMetric(registry: MetricRegistry): (workers: CleanupCounts['workers']) => void {
  const working = registry.gauge({
    name: 'kubelet_working_pods',
    help: 'Pods the workers know, by how far they are, whether they are wanted and whether they are static.',
    labels: ['lifecycle', 'config', 'static'],
  });
  return (workers) => {
    const known = Map.groupBy(workers.values(), seriesOf);
    for (const lifecycle of lifecycles) {
      for (const [config, isStatic] of configs) {
        const found = known.get([lifecycle, config, isStatic].join())?.length ?? 0;
        working.with({ lifecycle, config, static: isStatic }).set(found);
      }
    }
  };
}

/** Registers the metrics that are computed at scrape time. */
export function collectPodMetrics(registry: MetricRegistry, desiredPods: () => readonly Pod[]): void {
  registry.collect(() => {
    const value = desiredPods().reduce((sum, pod) => sum + ephemeralContainersOf(pod).length, 0);
    const help = 'Ephemeral containers of the pods that should run here.';
    return [{ name: 'kubelet_managed_ephemeral_containers', type: 'gauge', help, samples: [{ value }] }];
  });
}

/**
 * The time since the kubelet first observed the pod, if this change makes it running; undefined for
 * any other change.
 */
export function startedAfterMs({ pod, before, after }: StatusChange, now: Instant): number | undefined {
  if (after.phase !== 'Running' || before?.phase === 'Running') return undefined;
  const firstObserved = Date.parse(pod.metadata.annotations?.[annotations.seen] ?? '');
  return Number.isNaN(firstObserved) ? undefined : Math.max(0, now - firstObserved);
}

function setByStatic(gauge: GaugeFamily<'static'>, pods: readonly Pod[]): void {
  for (const isStatic of ['', 'true'] as const) gauge.with({ static: isStatic }).set(counted(pods, isStatic));
}

function counted(pods: readonly Pod[], isStatic: '' | 'true'): number {
  return pods.filter((pod) => isStaticPod(pod) === (isStatic === 'true')).length;
}

function seriesOf({ state, orphan, hasConfig, isStatic }: WorkerSummary): string {
  if (!hasConfig) return [state, 'runtime_only', 'unknown'].join();
  return [state, orphan ? 'orphan' : 'desired', isStatic ? 'true' : ''].join();
}

function rejectionLabel(reason: string): string {
  if (rejectionReasons.has(reason)) return reason;
  return reason.startsWith('OutOf') ? 'OutOfExtendedResources' : 'Other';
}
