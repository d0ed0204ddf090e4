import type { MetricRegistry } from '../../lib/index.ts';
import type { AdmissionObserver } from './pod-admission.ts';

/**
 * The resources that have their own value of the metric label preemption_signal. Extended resources
 * are counted as `other`, because their number is unlimited.
 */
const known: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods']);

/** Creates the observer of preemptions, with the metric name of the Go kubelet. */
export function admissionMetrics(registry: MetricRegistry): AdmissionObserver {
  const preemptions = registry.counter({
    name: 'kubelet_preemptions',
    help: 'Pods that were ended for a critical pod, by the resource that was short.',
    labels: ['preemption_signal'],
  });
  return {
    preempted: (resource) => {
      const signal = known.has(resource) ? resource : 'other';
      preemptions.with({ preemption_signal: signal }).inc();
    },
  };
}
