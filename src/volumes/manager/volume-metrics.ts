import type { Clock, MetricRegistry } from '../../lib/index.ts';

/** What is done to a volume, as dashboards know it. */
export type StorageOperation =
  | 'volume_mount'
  | 'volume_unmount'
  | 'map_volume'
  | 'unmap_volume'
  | 'unmount_device'
  | 'unmap_device'
  | 'verify_controller_attached_volume'
  | 'volume_fs_resize'
  | 'volume_apply_access_control';

/** What mounts a volume, as dashboards know it. */
export interface VolumePlugin {
  readonly name: string;
  /** Whether the volume is described in the words of the time before there were drivers. */
  readonly origin?: 'in-tree' | undefined;
}

/** Of disks and directories of the machine. */
export const localPlugin: VolumePlugin = { name: 'kubernetes.io/local-volume' };

/** As metrics say that a driver has taken a volume over. */
export function migratedLabel({ origin }: Pick<VolumePlugin, 'origin'>): 'true' | 'false' {
  return origin === 'in-tree' ? 'true' : 'false';
}

/** Told how long something took that was done to a volume of a plugin. Never throws. */
export type StorageObserver = (
  operation: StorageOperation,
  plugin: VolumePlugin,
  end: { readonly outcome: 'success' | 'fail-unknown'; readonly ms: number },
) => void;

/** In seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Make one for a registry. */
export function storageMetrics(registry: MetricRegistry): StorageObserver {
  const durations = registry.histogram({
    name: 'storage_operation_duration_seconds',
    help: 'Time it took to mount, unmount or resize a volume.',
    labels: ['volume_plugin', 'operation_name', 'status', 'migrated'],
    buckets,
  });
  return (operation, plugin, { outcome, ms }) =>
    durations
      .with({
        volume_plugin: plugin.name,
        operation_name: operation,
        status: outcome,
        migrated: migratedLabel(plugin),
      })
      .observe(ms / 1_000);
}

/** Told of volumes of earlier kubelets that were found, and of those cleaned up though nobody knows what they were. */
export type ReconstructionObserver = (
  what: 'reconstructed' | 'force-cleaned',
  outcome: 'success' | 'failure',
) => void;

/** Make one for a registry. */
export function reconstructionMetrics(registry: MetricRegistry): ReconstructionObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const tried = {
    reconstructed: counter(
      'reconstruct_volume_operations_total',
      'Volumes of earlier kubelets that were found.',
    ),
    'force-cleaned': counter(
      'force_cleaned_failed_volume_operations_total',
      'Volumes that were cleaned up though nothing says what they were.',
    ),
  };
  const failed = {
    reconstructed: counter(
      'reconstruct_volume_operations_errors_total',
      'Volumes of earlier kubelets of which nothing says what they are.',
    ),
    'force-cleaned': counter(
      'force_cleaned_failed_volume_operation_errors_total',
      'Volumes of which nothing says what they were and that could not be cleaned up.',
    ),
  };
  return (what, outcome) => {
    tried[what].inc();
    if (outcome === 'failure') failed[what].inc();
  };
}

/** Does the work and tells how long it took, once for each of the plugins; fails as the work does. */
export async function timed<T>(
  { clock, observe }: { readonly clock: Clock; readonly observe: StorageObserver },
  operation: StorageOperation,
  plugins: Iterable<VolumePlugin>,
  work: () => Promise<T>,
): Promise<T> {
  const begin = clock.monotonicMs();
  const tell = (outcome: 'success' | 'fail-unknown') => {
    for (const plugin of plugins) observe(operation, plugin, { outcome, ms: clock.monotonicMs() - begin });
  };
  try {
    const result = await work();
    tell('success');
    return result;
  } catch (error) {
    tell('fail-unknown');
    throw error;
  }
}
