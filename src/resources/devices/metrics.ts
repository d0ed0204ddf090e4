import type { MetricRegistry } from '../../lib/index.ts';

/** Observes device plugin calls for metrics. Never throws. */
export interface DeviceObserver {
  registered(resource: string): void;
  allocated(resource: string, ms: number): void;
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the metrics of device plugins; call once per registry. */
export function deviceMetrics(registry: MetricRegistry): DeviceObserver {
  const registrations = registry.counter({
    name: 'kubelet_device_plugin_registration_total',
    help: 'Device plugin registrations by resource.',
    labels: ['resource_name'],
  });
  const durations = registry.histogram({
    name: 'kubelet_device_plugin_alloc_duration_seconds',
    help: 'Duration of device plugin allocations by resource.',
    labels: ['resource_name'],
    buckets,
  });
  return {
    registered: (resource) => registrations.with({ resource_name: resource }).inc(),
    allocated: (resource, ms) => durations.with({ resource_name: resource }).observe(ms / 1_000),
  };
}
