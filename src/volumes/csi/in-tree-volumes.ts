import type { CSIPersistentVolumeSource, PersistentVolume, Volume } from '../../kinds/index.ts';
import { unusable } from '../projected/payload.ts';

/** The CSI volume source to which an in-tree volume is translated. */
export type TranslatedVolume = CSIPersistentVolumeSource & {
  /** Access mode that replaces the first one of the volume; undefined to keep it. */
  readonly accessMode?: string | undefined;
  readonly origin?: 'in-tree' | undefined;
};

type Spec = NonNullable<PersistentVolume['spec']>;
type Translate<Field extends keyof Spec> = (
  source: NonNullable<Spec[Field]>,
  volume: PersistentVolume,
) => TranslatedVolume;

const managed = 'Managed';
/** Placeholder for project and zone, which the driver determines. */
const unspecified = 'UNSPECIFIED';
const zoneLabels = ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'];
const zoneDelimiter = '__';
const groupAnnotation = 'kubernetes.io/azure-file-resource-group';
const portworxSecret = {
  name: 'openstorage.io/auth-secret-name',
  namespace: 'openstorage.io/auth-secret-namespace',
};

const awsElasticBlockStore: Translate<'awsElasticBlockStore'> = ({ volumeID, fsType, partition = 0 }) => ({
  driver: 'ebs.csi.aws.com',
  volumeHandle: ebsHandle(volumeID),
  fsType,
  volumeAttributes: { partition: `${partition}` },
});

const azureDisk: Translate<'azureDisk'> = ({ diskURI, fsType, cachingMode, kind = managed }) => {
  if (kind.toLowerCase() !== managed.toLowerCase())
    throw unusable(`kind(${kind}) is not supported in csi migration`);
  return {
    driver: 'disk.csi.azure.com',
    volumeHandle: diskURI,
    fsType,
    volumeAttributes: {
      kind: managed,
      ...(cachingMode === undefined ? {} : { cachingmode: cachingMode }),
      ...(fsType === undefined ? {} : { fstype: fsType }),
    },
  };
};

const azureFile: Translate<'azureFile'> = (
  { secretName, secretNamespace, shareName },
  { metadata, spec },
) => {
  const namespace = secretNamespace || (spec?.claimRef?.namespace ?? '');
  if (namespace === '')
    throw unusable('could not find a secret namespace in PersistentVolumeSource or ClaimRef');
  const account = accountIn(secretName) ?? secretName;
  const group = metadata?.annotations?.[groupAnnotation] ?? '';
  return {
    driver: 'file.csi.azure.com',
    volumeHandle: [group, account, shareName, metadata?.name ?? '', namespace].join('#'),
    volumeAttributes: { sharename: shareName },
    nodeStageSecretRef: { name: secretName, namespace },
  };
};

const cinder: Translate<'cinder'> = ({ volumeID, fsType }) => ({
  driver: 'cinder.csi.openstack.org',
  volumeHandle: volumeID,
  fsType,
});

const gcePersistentDisk: Translate<'gcePersistentDisk'> = ({ pdName, fsType, partition = 0 }, volume) => ({
  driver: 'pd.csi.storage.gke.io',
  volumeHandle: `projects/${unspecified}/${locationOf(volume)}/disks/${pdName}`,
  fsType,
  volumeAttributes: { partition: partition === 0 ? '' : `${partition}` },
  accessMode: isOnlyRead(volume) ? 'ReadOnlyMany' : 'ReadWriteOnce',
});

const portworxVolume: Translate<'portworxVolume'> = ({ volumeID, fsType }, { metadata }) => {
  const [name, namespace] = [portworxSecret.name, portworxSecret.namespace].map(
    (key) => metadata?.annotations?.[key],
  );
  const secret = name === undefined || namespace === undefined ? undefined : { name, namespace };
  return {
    driver: 'pxd.portworx.com',
    volumeHandle: volumeID,
    fsType,
    nodeStageSecretRef: secret,
    nodePublishSecretRef: secret,
    nodeExpandSecretRef: secret,
  };
};

const vsphereVolume: Translate<'vsphereVolume'> = ({ volumePath, fsType, storagePolicyName = '' }) => ({
  driver: 'csi.vsphere.vmware.com',
  volumeHandle: volumePath,
  fsType,
  volumeAttributes: storagePolicyName === '' ? {} : { storagepolicyname: storagePolicyName },
});

const translations = {
  awsElasticBlockStore,
  azureDisk,
  azureFile,
  cinder,
  gcePersistentDisk,
  portworxVolume,
  vsphereVolume,
} as const;

/**
 * Translates an in-tree volume source to CSI. Returns undefined when its type is not migrated;
 * throws VOLUME_UNUSABLE when the driver does not support the volume.
 */
export function inTreeVolume(volume: PersistentVolume): TranslatedVolume | undefined {
  for (const [field, translate] of Object.entries(translations)) {
    const source = volume.spec?.[field as keyof typeof translations];
    if (source === undefined) continue;
    return { ...(translate as Translate<keyof Spec>)(source as never, volume), origin: 'in-tree' };
  }
  return undefined;
}

/** Whether an inline volume is mounted by a CSI driver. */
export function isOfDriver(volume: Volume): boolean {
  const fields = ['csi', ...Object.keys(translations)] as readonly (keyof Volume)[];
  return fields.some((field) => volume[field] !== undefined);
}

/** Returns the volume id of `vol-1` or `aws://zone/vol-1`. */
function ebsHandle(id: string): string {
  if (!id.startsWith('aws://')) return id;
  const handle = id
    .slice('aws://'.length)
    .split('/')
    .slice(1)
    .filter((part) => part !== '')
    .join('/');
  if (!/^vol-[^/]*$/.test(handle)) throw unusable(`Invalid format for AWS volume (${id})`);
  return handle;
}

/**
 * Returns the storage account in a Secret's name: the longest text between `azure-storage-account-`
 * and `-secret`.
 */
function accountIn(secretName: string): string | undefined {
  const mark = 'azure-storage-account-';
  const begin = secretName.indexOf(mark);
  const from = begin + mark.length;
  const end = secretName.lastIndexOf('-secret');
  return begin >= 0 && end > from ? secretName.slice(from, end) : undefined;
}

/** Returns the zone of a disk, or the region of a disk in several zones. */
function locationOf({ metadata }: PersistentVolume): string {
  const label = zoneLabels.map((key) => metadata?.labels?.[key] ?? '').find((value) => value !== '') ?? '';
  const zones = label.split(zoneDelimiter);
  if (zones.length === 1) return `zones/${label === '' ? unspecified : label}`;
  const regions = new Set(zones.map((zone) => zone.split('-').slice(0, 2).join('-')));
  const [region] = regions;
  const isSound = zones.every((zone) => zone.split('-').length === 3) && regions.size === 1;
  if (region === undefined || !isSound)
    throw unusable(`failed to get region from zones: ${zones.join(', ')}`);
  return `regions/${region}`;
}

/** Whether ReadOnlyMany is the only access mode of the volume. */
function isOnlyRead({ spec }: PersistentVolume): boolean {
  const { accessModes = [] } = spec ?? {};
  return accessModes.length > 0 && accessModes.every((mode) => mode === 'ReadOnlyMany');
}
