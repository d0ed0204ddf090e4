import type { MetricRegistry } from '../../lib/index.ts';

/** Told what plugins do. Never throws. */
export interface DeviceObserver {
  registered(resource: string): void;
  allocated(resource: string, ms: number): void;
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Make one for a registry; the names are those dashboards know. */
export function deviceMetrics(registry: MetricRegistry): DeviceObserver {
  const registrations = registry.counter({
    name: 'kubelet_device_plugin_registration_total',
    help: 'How often plugins for devices made themselves known, by resource.',
    labels: ['resource_name'],
  });
  const durations = registry.histogram({
    name: 'kubelet_device_plugin_alloc_duration_seconds',
    help: 'How long plugins took to set devices aside, by resource.',
    labels: ['resource_name'],
    buckets,
  });
  return {
    registered: (resource) => registrations.with({ resource_name: resource }).inc(),
    allocated: (resource, ms) => durations.with({ resource_name: resource }).observe(ms / 1_000),
  };
}
