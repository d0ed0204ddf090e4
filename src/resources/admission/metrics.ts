import type { MetricRegistry } from '../../lib/index.ts';
import type { AdmissionObserver } from './pod-admission.ts';

/** Resources with their own series; extended resources may have any name. */
const known: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods']);

/** Creates the observer with the metric name of the Go kubelet. */
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
