import type {
  AzureDiskVolumeSource,
  DownwardAPIVolumeFile,
  EphemeralVolumeSource,
  RBDVolumeSource,
  ScaleIOVolumeSource,
  Volume,
  VolumeProjection,
  VolumeSource,
} from '../../kinds/index.ts';
import { pullPolicyOf } from '../image-name.ts';
import { roundedToMilli, withFieldDefaults } from './containers.ts';

/** The default mode of files in volumes: 0644 in octal. */
const readableByAll = 0o644;
const anHour = 3600;

/** A volume without a source is an emptyDir. */
export function withVolumeDefaults(volume: Volume): Volume {
  const { name, ...source } = volume;
  const isBare = Object.values(source).every((part) => part === undefined);
  return isBare ? { name, emptyDir: {} } : { name, ...withSourceDefaults(source) };
}

function withSourceDefaults(source: VolumeSource): VolumeSource {
  const { hostPath, secret, configMap, downwardAPI, projected, image, iscsi } = source;
  const { rbd, azureDisk, scaleIO, ephemeral } = source;
  return {
    ...source,
    ...(hostPath && { hostPath: { ...hostPath, type: hostPath.type ?? '' } }),
    ...(secret && { secret: { ...secret, defaultMode: secret.defaultMode ?? readableByAll } }),
    ...(configMap && { configMap: { ...configMap, defaultMode: configMap.defaultMode ?? readableByAll } }),
    ...(downwardAPI && {
      downwardAPI: {
        ...downwardAPI,
        defaultMode: downwardAPI.defaultMode ?? readableByAll,
        ...(downwardAPI.items && { items: downwardAPI.items.map(withFileDefaults) }),
      },
    }),
    ...(projected && {
      projected: {
        ...projected,
        defaultMode: projected.defaultMode ?? readableByAll,
        sources: projected.sources.map(withProjectionDefaults),
      },
    }),
    ...(image && {
      image: { ...image, pullPolicy: image.pullPolicy || pullPolicyOf(undefined, image.reference ?? '') },
    }),
    ...(iscsi && { iscsi: { ...iscsi, iscsiInterface: iscsi.iscsiInterface || 'default' } }),
    ...(rbd && { rbd: withRbdDefaults(rbd) }),
    ...(azureDisk && { azureDisk: withAzureDefaults(azureDisk) }),
    ...(scaleIO && { scaleIO: withScaleIoDefaults(scaleIO) }),
    ...(ephemeral && { ephemeral: withClaimDefaults(ephemeral) }),
  };
}

function withFileDefaults(file: DownwardAPIVolumeFile): DownwardAPIVolumeFile {
  return file.fieldRef === undefined ? file : { ...file, fieldRef: withFieldDefaults(file.fieldRef) };
}

function withProjectionDefaults(projection: VolumeProjection): VolumeProjection {
  const { downwardAPI, serviceAccountToken: token } = projection;
  return {
    ...projection,
    ...(downwardAPI?.items && {
      downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(withFileDefaults) },
    }),
    ...(token && { serviceAccountToken: { ...token, expirationSeconds: token.expirationSeconds ?? anHour } }),
  };
}

function withRbdDefaults(rbd: RBDVolumeSource): RBDVolumeSource {
  return {
    ...rbd,
    pool: rbd.pool || 'rbd',
    user: rbd.user || 'admin',
    keyring: rbd.keyring || '/etc/ceph/keyring',
  };
}

function withAzureDefaults(disk: AzureDiskVolumeSource): AzureDiskVolumeSource {
  return {
    ...disk,
    cachingMode: disk.cachingMode ?? 'ReadWrite',
    fsType: disk.fsType ?? 'ext4',
    readOnly: disk.readOnly ?? false,
    kind: disk.kind ?? 'Shared',
  };
}

function withScaleIoDefaults(volume: ScaleIOVolumeSource): ScaleIOVolumeSource {
  return {
    ...volume,
    storageMode: volume.storageMode || 'ThinProvisioned',
    fsType: volume.fsType || 'xfs',
  };
}

function withClaimDefaults(ephemeral: EphemeralVolumeSource): EphemeralVolumeSource {
  const template = ephemeral.volumeClaimTemplate;
  if (template === undefined) return ephemeral;
  const { spec } = template;
  const limits = roundedToMilli(spec.resources?.limits);
  const requests = roundedToMilli(spec.resources?.requests);
  const resources = { ...spec.resources, ...(limits && { limits }), ...(requests && { requests }) };
  return {
    ...ephemeral,
    volumeClaimTemplate: {
      ...template,
      spec: { ...spec, volumeMode: spec.volumeMode ?? 'Filesystem', ...(spec.resources && { resources }) },
    },
  };
}
