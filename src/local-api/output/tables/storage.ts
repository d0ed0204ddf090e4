import type { JsonObject } from '../../../api/index.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../kinds/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageColumn, ageOf, column, nameColumn, orNone, type Printer, wide } from './column.ts';

export const volumePrinter: Printer = {
  columns: [
    nameColumn,
    column('Capacity', 'The capacity of the volume.'),
    column('Access Modes', 'How many nodes or pods may use the volume concurrently, and how.'),
    column('Reclaim Policy', 'What happens to the volume when its claim is deleted.'),
    column('Status', 'Whether the volume is bound to a claim.'),
    column('Claim', 'Namespace and name of the bound claim.'),
    column('StorageClass', 'The storage class of the volume.'),
    column('VolumeAttributesClass', 'The volume attributes class.'),
    column('Reason', 'The reason of the status in one machine-readable word.'),
    ageColumn,
    wide('VolumeMode', 'Whether the volume has a file system or is a block device.'),
  ],
  cells: (object, nowMs) => {
    const { spec, status } = object as unknown as PersistentVolume;
    const claim = spec?.claimRef;
    return [
      object.metadata.name,
      spec?.capacity?.['storage'] ?? '0',
      accessText(spec?.accessModes),
      spec?.persistentVolumeReclaimPolicy ?? '',
      phaseOf(object, status?.phase),
      claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`,
      classOf(object, spec?.storageClassName),
      spec?.volumeAttributesClassName ?? '<unset>',
      status?.reason ?? '',
      ageOf(object.metadata.creationTimestamp, nowMs),
      spec?.volumeMode ?? '<unset>',
    ];
  },
};

export const claimPrinter: Printer = {
  columns: [
    nameColumn,
    column('Status', 'Whether the claim is bound.'),
    column('Volume', 'The volume the claim is bound to.'),
    column('Capacity', 'The capacity of the volume.'),
    column('Access Modes', 'How many nodes or pods may use the volume concurrently, and how.'),
    column('StorageClass', 'The requested storage class.'),
    column('VolumeAttributesClass', 'The volume attributes class.'),
    ageColumn,
    wide('VolumeMode', 'Whether a file system or a block device is requested.'),
  ],
  cells: (object, nowMs) => {
    const { spec, status } = object as unknown as PersistentVolumeClaim;
    const volume = spec?.volumeName ?? '';
    return [
      object.metadata.name,
      phaseOf(object, status?.phase),
      volume,
      volume === '' ? '' : (status?.capacity?.['storage'] ?? '0'),
      volume === '' ? '' : accessText(status?.accessModes),
      classOf(object, spec?.storageClassName),
      spec?.volumeAttributesClassName ?? '<unset>',
      ageOf(object.metadata.creationTimestamp, nowMs),
      spec?.volumeMode ?? '<unset>',
    ];
  },
};

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

function accessText(modes: readonly string[] | undefined): string {
  const shown = Object.entries(shortModes).filter(([mode]) => modes?.includes(mode) === true);
  return shown.map(([, short]) => short).join(',');
}

function phaseOf({ metadata }: StoredObject, phase: string | undefined): string {
  return metadata.deletionTimestamp === undefined ? (phase ?? '') : 'Terminating';
}

/** The storage class of the beta annotation overrides that of the spec. */
function classOf({ metadata }: StoredObject, name: string | undefined): string {
  return metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? name ?? '';
}

export const storageClassPrinter: Printer = {
  columns: [
    nameColumn,
    column('Provisioner', 'The provisioner of volumes of this class.'),
    column('ReclaimPolicy', 'What happens to volumes of this class when their claims are deleted.'),
    column('VolumeBindingMode', 'Whether volumes are bound immediately or when a pod uses the claim.'),
    column('AllowVolumeExpansion', 'Whether volumes of this class can be expanded.'),
    ageColumn,
  ],
  cells: (object, nowMs) => [
    `${object.metadata.name}${isDefaultClass(object) ? ' (default)' : ''}`,
    String(object['provisioner'] ?? ''),
    String(object['reclaimPolicy'] ?? 'Delete'),
    String(object['volumeBindingMode'] ?? 'Immediate'),
    object['allowVolumeExpansion'] === true,
    ageOf(object.metadata.creationTimestamp, nowMs),
  ],
};

function isDefaultClass({ metadata }: StoredObject): boolean {
  return ['storageclass.kubernetes.io', 'storageclass.beta.kubernetes.io'].some(
    (domain) => metadata.annotations?.[`${domain}/is-default-class`] === 'true',
  );
}

export const attachmentPrinter: Printer = {
  columns: [
    nameColumn,
    { ...column('Attacher', 'The CSI driver that attaches the volume.'), format: 'name' },
    column('PV', 'The volume to attach.'),
    column('Node', 'The node to attach the volume to.'),
    column('Attached', 'Whether the volume is attached.', 'boolean'),
    ageColumn,
  ],
  cells: (object, nowMs) => {
    const source = (object.spec?.['source'] ?? {}) as JsonObject;
    return [
      object.metadata.name,
      String(object.spec?.['attacher'] ?? ''),
      String(source['persistentVolumeName'] ?? ''),
      String(object.spec?.['nodeName'] ?? ''),
      object.status?.['attached'] === true,
      ageOf(object.metadata.creationTimestamp, nowMs),
    ];
  },
};

export const csiNodePrinter: Printer = {
  columns: [nameColumn, column('Drivers', 'The number of CSI drivers on the node.', 'integer'), ageColumn],
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name,
    ((spec?.['drivers'] ?? []) as readonly unknown[]).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
};

export const csiDriverPrinter: Printer = {
  columns: [
    nameColumn,
    column('AttachRequired', 'Whether volumes must be attached before they are mounted.', 'boolean'),
    column('PodInfoOnMount', 'Whether the driver receives information about the pod.', 'boolean'),
    column('StorageCapacity', 'Whether the driver reports its storage capacity to the scheduler.', 'boolean'),
    column('TokenRequests', 'The audiences of pod tokens that the driver receives.'),
    column('RequiresRepublish', 'Whether NodePublishVolume is called periodically.', 'boolean'),
    column('Modes', 'The supported volume lifecycle modes.'),
    ageColumn,
  ],
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name,
    spec?.['attachRequired'] !== false,
    spec?.['podInfoOnMount'] === true,
    spec?.['storageCapacity'] === true,
    audiencesOf(spec?.['tokenRequests'] as readonly JsonObject[] | undefined),
    spec?.['requiresRepublish'] === true,
    orNone(((spec?.['volumeLifecycleModes'] ?? []) as readonly string[]).join(',')),
    ageOf(metadata.creationTimestamp, nowMs),
  ],
};

function audiencesOf(requests: readonly JsonObject[] | undefined): string {
  if (requests === undefined) return '<unset>';
  return requests.map(({ audience }) => String(audience ?? '')).join(',');
}
