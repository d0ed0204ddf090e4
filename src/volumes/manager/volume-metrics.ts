import type { Clock, MetricRegistry } from '../../lib/index.ts';

/** The operation labels of the storage metrics. */
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

/** The plugin of a volume, as used in metric labels. */
export interface VolumePlugin {
  readonly name: string;
  /** `in-tree` for an in-tree volume that was migrated to CSI. */
  readonly origin?: 'in-tree' | undefined;
}

/** The plugin of local PersistentVolumes. */
export const localPlugin: VolumePlugin = { name: 'kubernetes.io/local-volume' };

/** Returns the value of the `migrated` label: whether the volume was migrated to CSI. */
export function migratedLabel({ origin }: Pick<VolumePlugin, 'origin'>): 'true' | 'false' {
  return origin === 'in-tree' ? 'true' : 'false';
}

/** Observes the duration of an operation on a volume. Never throws. */
export type StorageObserver = (
  operation: StorageOperation,
  plugin: VolumePlugin,
  end: { readonly outcome: 'success' | 'fail-unknown'; readonly ms: number },
) => void;

/** Histogram buckets of storage operations, in seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Registers the storage operation metrics; call once per registry. */
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

/** Counts reconstructed volumes of previous kubelets, and unknown ones that were cleaned up. */
export type ReconstructionObserver = (
  what: 'reconstructed' | 'force-cleaned',
  outcome: 'success' | 'failure',
) => void;

/** Registers the metrics of volume reconstruction; call once per registry. */
export function reconstructionMetrics(registry: MetricRegistry): ReconstructionObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const tried = {
    reconstructed: counter(
      'reconstruct_volume_operations_total',
      'Volumes of previous kubelets that were reconstructed.',
    ),
    'force-cleaned': counter(
      'force_cleaned_failed_volume_operations_total',
      'Volumes that were cleaned up although they could not be reconstructed.',
    ),
  };
  const failed = {
    reconstructed: counter(
      'reconstruct_volume_operations_errors_total',
      'Volumes of previous kubelets that could not be reconstructed.',
    ),
    'force-cleaned': counter(
      'force_cleaned_failed_volume_operation_errors_total',
      'Volumes that could be neither reconstructed nor cleaned up.',
    ),
  };
  return (what, outcome) => {
    tried[what].inc();
    if (outcome === 'failure') failed[what].inc();
  };
}

/** Runs the work and observes its duration once per plugin. Resolves or rejects like the work. */
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
