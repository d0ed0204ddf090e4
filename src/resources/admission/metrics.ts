import type { MetricRegistry } from '../../lib/index.ts';
import type { AdmissionObserver } from './pod-admission.ts';

/** Resources that are a series of their own; extended ones may have any name. */
const known: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods']);

/** Make one for a registry; the name is the one dashboards know. */
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
