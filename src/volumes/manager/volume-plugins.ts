import type { Volume } from '../../kinds/index.ts';
import type { VolumePlugin } from './volume-metrics.ts';

/** Where a volume of a pod is to be found. */
export type KnownVolume =
  | PathVolume
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      readonly plugin?: VolumePlugin | undefined;
    };

export type PathVolume = {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly?: boolean;
  readonly relabel?: boolean;
  readonly specName?: string;
  readonly plugin?: VolumePlugin | undefined;
};

const pluginNames = {
  emptyDir: 'kubernetes.io/empty-dir',
  hostPath: 'kubernetes.io/host-path',
  nfs: 'kubernetes.io/nfs',
} as const;

/** Of a volume that the pod describes itself, if it is of a kind that is known. */
export function pluginsOfVolume(volume: Volume, ofDriver: VolumePlugin | undefined): readonly VolumePlugin[] {
  if (ofDriver !== undefined) return [ofDriver];
  const plugins = (['hostPath', 'emptyDir', 'nfs'] as const).filter((kind) => volume[kind] !== undefined);
  return plugins.map((kind) => ({ name: pluginNames[kind] }));
}

/** The directories of volumes below that of a pod are named after their plugins. */
export function pluginOf(podDirectory: string, volume: KnownVolume): VolumePlugin {
  if (volume.plugin !== undefined) return volume.plugin;
  const [part, path] =
    volume.kind === 'path' ? ['volumes', volume.hostPath] : ['volumeDevices', volume.devicePath];
  const own = `${podDirectory}/${part}/`;
  if (!path.startsWith(own)) return { name: pluginNames.hostPath };
  return { name: (path.slice(own.length).split('/')[0] ?? '').replace('~', '/') };
}

/** By the field that is set besides the name. */
export function kindOf(volume: Volume): string {
  const set = Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined);
  return set?.[0] ?? 'unknown';
}
