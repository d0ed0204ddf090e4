import type { PersistentVolume, Volume } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { sourceOf } from '../claims/bound-volume.ts';
import type { VolumePlugin } from '../manager/volume-metrics.ts';
import { type CsiPaths, csiPlugin, inlineHandle } from './csi-paths.ts';
import type { CsiVolume } from './csi-request.ts';

/**
 * Returns the CSI volume of an inline volume; undefined for other types. Throws VOLUME_UNUSABLE for
 * an in-tree volume that the driver does not support.
 */
export function inlineVolume(pod: Pod, volume: Volume): CsiVolume | undefined {
  return volume.csi === undefined ? restoredVolumeOf(pod, volume) : volumeOfDriver(pod, volume, volume.csi);
}

function volumeOfDriver(
  { metadata: { uid, namespace } }: Pod,
  { name }: Volume,
  csi: NonNullable<Volume['csi']>,
): CsiVolume {
  const secret = csi.nodePublishSecretRef?.name;
  return {
    name,
    driver: csi.driver,
    handle: inlineHandle(uid, name),
    mode: 'Ephemeral',
    fsType: csi.fsType ?? '',
    readOnly: csi.readOnly === true,
    attributes: csi.volumeAttributes ?? {},
    mountOptions: [],
    accessMode: 'ReadWriteOnce',
    ...(secret === undefined ? {} : { publishSecret: { namespace, name: secret } }),
  };
}

/** Paths of an inline volume of a pod. */
export interface InlinePaths {
  readonly hostPath: string;
  readonly specName: string;
  readonly readOnly: boolean;
  /** Plugin name for metrics. */
  readonly plugin: VolumePlugin;
}

/** Returns the paths of an inline volume; undefined when no CSI driver mounts it. */
export function inlinePaths(
  paths: Pick<CsiPaths, 'volume'>,
  pod: Pod,
  described: Volume,
): InlinePaths | undefined {
  try {
    const volume = inlineVolume(pod, described);
    if (volume === undefined) return undefined;
    const { name: specName, readOnly } = volume;
    return {
      hostPath: paths.volume(pod.metadata.uid, specName).mount,
      specName,
      readOnly,
      plugin: csiPlugin(volume),
    };
  } catch {
    // An invalid volume has no paths; the error is reported when it is mounted.
    return undefined;
  }
}

interface RestoredSource {
  readonly spec: PersistentVolume['spec'];
  /** Volume id in the volume source, unique for its driver. */
  readonly id: string;
  readonly readOnly: boolean | undefined;
}

/**
 * Returns an inline in-tree volume as a CSI volume, which is attached, staged and located like a
 * PersistentVolume with the same source.
 */
function restoredVolumeOf(pod: Pod, volume: Volume): CsiVolume | undefined {
  const found = restoredSourceOf(pod, volume);
  const source = found && sourceOf({ metadata: { name: volume.name }, spec: found.spec ?? {} });
  if (found === undefined || source?.kind !== 'csi') return undefined;
  const { kind: _kind, ...told } = source;
  const name = `${told.driver}-${found.id}`.replaceAll('/', '~');
  return { ...told, name, readOnly: found.readOnly === true, mountOptions: [], mode: 'Persistent' };
}

function restoredSourceOf({ metadata: { namespace } }: Pod, volume: Volume): RestoredSource | undefined {
  const { awsElasticBlockStore, azureDisk, azureFile, cinder, gcePersistentDisk } = volume;
  const { portworxVolume, vsphereVolume } = volume;
  const once = ['ReadWriteOnce'];
  const many = ['ReadWriteMany'];
  return (
    asPersistentVolume(
      awsElasticBlockStore,
      once,
      ({ volumeID }) => volumeID.split('/').at(-1) ?? volumeID,
      (source) => ({ awsElasticBlockStore: source }),
    ) ??
    asPersistentVolume(
      azureDisk,
      once,
      ({ diskName }) => diskName,
      (source) => ({ azureDisk: source }),
    ) ??
    asPersistentVolume(
      azureFile,
      many,
      ({ shareName }) => shareName,
      (source) => ({ azureFile: { ...source, secretNamespace: namespace } }),
    ) ??
    asPersistentVolume(
      cinder,
      once,
      ({ volumeID }) => volumeID,
      ({ volumeID, fsType }) => ({ cinder: { volumeID, fsType } }),
    ) ??
    asPersistentVolume(
      gcePersistentDisk,
      gcePersistentDisk?.readOnly === true ? ['ReadOnlyMany'] : once,
      ({ pdName }) => pdName,
      (source) => ({ gcePersistentDisk: source }),
    ) ??
    asPersistentVolume(
      portworxVolume,
      many,
      ({ volumeID }) => volumeID,
      (source) => ({ portworxVolume: source }),
    ) ??
    asPersistentVolume(
      vsphereVolume,
      once,
      ({ volumePath }) => volumePath,
      (source) => ({ vsphereVolume: source }),
    )
  );
}

function asPersistentVolume<Source extends object>(
  source: Source | undefined,
  accessModes: string[],
  id: (source: Source) => string,
  spec: (source: Source) => object,
): RestoredSource | undefined {
  return (
    source && {
      spec: { accessModes, ...spec(source) },
      id: id(source),
      readOnly: (source as { readonly readOnly?: boolean }).readOnly,
    }
  );
}
