import type { EvictionSignal } from '../../config/index.ts';
import type { MetricRegistry } from '../../lib/index.ts';
import type { LimitSignal } from './local-storage.ts';

export interface EvictionObserver {
  evicted(signal: EvictionSignal | LimitSignal): void;
  /** Observes the age of the stats at the time of the eviction that they caused. */
  statsAge(signal: EvictionSignal, seconds: number): void;
}

/** Registers the metrics of evictions; call once per registry. */
export function evictionMetrics(registry: MetricRegistry): EvictionObserver {
  const evictions = registry.counter({
    name: 'kubelet_evictions',
    help: 'Evicted pods, by signal or exceeded limit.',
    labels: ['eviction_signal'],
  });
  const age = registry.histogram({
    name: 'kubelet_eviction_stats_age_seconds',
    help: 'Age of the stats at the eviction, in seconds.',
    labels: ['eviction_signal'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  return {
    evicted: (signal) => evictions.with({ eviction_signal: signal }).inc(),
    statsAge: (signal, seconds) => age.with({ eviction_signal: signal }).observe(seconds),
  };
}
