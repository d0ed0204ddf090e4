import type { MetricRegistry } from '../../lib/index.ts';
import { migratedLabel, type VolumePlugin } from '../manager/volume-metrics.ts';

/** Observes the result and duration of each driver call. Never throws. */
export type CsiObserver = (
  driver: string,
  call: { readonly method: string; readonly code: string; readonly ms: number } & Pick<
    VolumePlugin,
    'origin'
  >,
) => void;

/** Histogram buckets in seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Registers the metrics; call once per registry. */
export function csiMetrics(registry: MetricRegistry): CsiObserver {
  const durations = registry.histogram({
    name: 'csi_operations_seconds',
    help: 'Time it took CSI drivers to answer, by what they answered.',
    labels: ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
    buckets,
  });
  return (driver, { method, code, ms, origin }) =>
    durations
      .with({
        driver_name: driver,
        method_name: method,
        grpc_status_code: code,
        migrated: migratedLabel({ origin }),
      })
      .observe(ms / 1_000);
}
