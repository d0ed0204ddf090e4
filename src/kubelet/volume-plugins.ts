import type { Volume } from '../kinds/index.ts';
import { csiPlugin } from '../volumes/index.ts';

/** Where a volume of a pod is to be found. */
export type KnownVolume =
  | PathVolume
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      readonly plugin?: string | undefined;
    };

export type PathVolume = {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly?: boolean;
  readonly relabel?: boolean;
  readonly specName?: string;
  readonly plugin?: string | undefined;
};

const pluginNames = {
  emptyDir: 'kubernetes.io/empty-dir',
  hostPath: 'kubernetes.io/host-path',
  nfs: 'kubernetes.io/nfs',
} as const;
/** Of a volume that the pod describes itself, by its driver if it is one of a driver. */
export function pluginsOfVolume(volume: Volume, driver: string | undefined): readonly string[] {
  if (driver !== undefined) return [csiPlugin(driver)];
  const plugins = (['hostPath', 'emptyDir', 'nfs'] as const).filter((kind) => volume[kind] !== undefined);
  return plugins.map((kind) => pluginNames[kind]);
}

/** The directories of volumes below that of a pod are named after their plugins. */
export function pluginOf(podDirectory: string, volume: KnownVolume): string {
  if (volume.plugin !== undefined) return volume.plugin;
  const [part, path] =
    volume.kind === 'path' ? ['volumes', volume.hostPath] : ['volumeDevices', volume.devicePath];
  const own = `${podDirectory}/${part}/`;
  if (!path.startsWith(own)) return pluginNames.hostPath;
  return (path.slice(own.length).split('/')[0] ?? '').replace('~', '/');
}

/** By the field that is set besides the name. */
export function kindOf(volume: Volume): string {
  const set = Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined);
  return set?.[0] ?? 'unknown';
}
