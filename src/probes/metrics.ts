import type { MetricRegistry } from '../lib/index.ts';
import { type ProbeType, typeName } from './probe-request.ts';

/** The labels of a probe in metrics: its type, container and pod. */
export interface ProbeSubject {
  readonly type: ProbeType;
  readonly container: string;
  readonly pod: string;
  readonly namespace: string;
  readonly podUid: string;
}

/** Counts probe results. Never throws. */
export interface ProbeObserver {
  probed(subject: ProbeSubject, result: 'successful' | 'failed' | 'unknown', seconds: number): void;
  /**
   * Removes the metrics of a pod. `name` is `taken` if another pod with the same name exists now.
   */
  podRemoved(pod: Pick<ProbeSubject, 'pod' | 'namespace' | 'podUid'>, name: 'free' | 'taken'): void;
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the Go kubelet's probe metrics. */
export function probeMetrics(registry: MetricRegistry): ProbeObserver {
  const total = registry.counter({
    name: 'prober_probe_total',
    help: 'Probe results by container, probe type and result.',
    labels: ['probe_type', 'result', 'container', 'pod', 'namespace', 'pod_uid'],
  });
  const durations = registry.histogram({
    name: 'prober_probe_duration_seconds',
    help: 'Duration of probes that did not fail.',
    labels: ['probe_type', 'container', 'pod', 'namespace'],
    buckets,
  });
  return {
    probed({ type, container, pod, namespace, podUid }, result, seconds) {
      const of = { probe_type: typeName(type), container, pod, namespace };
      total.with({ ...of, result, pod_uid: podUid }).inc();
      if (result !== 'failed') durations.with(of).observe(seconds);
    },
    podRemoved({ pod, namespace, podUid }, name) {
      total.remove({ pod_uid: podUid });
      if (name === 'free') durations.remove({ pod, namespace });
    },
  };
}
