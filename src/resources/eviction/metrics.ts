import type { EvictionSignal } from '../../config/index.ts';
import type { MetricRegistry } from '../../lib/index.ts';
import type { LimitSignal } from './local-storage.ts';

export interface EvictionObserver {
  evicted(signal: EvictionSignal | LimitSignal): void;
  /** How old the figures were that somebody was evicted for. */
  statsAge(signal: EvictionSignal, seconds: number): void;
}

/** Make one for a registry; the names are the ones dashboards know. */
export function evictionMetrics(registry: MetricRegistry): EvictionObserver {
  const evictions = registry.counter({
    name: 'kubelet_evictions',
    help: 'Pods that were evicted, by what was short or which limit was passed.',
    labels: ['eviction_signal'],
  });
  const age = registry.histogram({
    name: 'kubelet_eviction_stats_age_seconds',
    help: 'Seconds from when figures were taken until a pod was evicted for them.',
    labels: ['eviction_signal'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  return {
    evicted: (signal) => evictions.with({ eviction_signal: signal }).inc(),
    statsAge: (signal, seconds) => age.with({ eviction_signal: signal }).observe(seconds),
  };
}
