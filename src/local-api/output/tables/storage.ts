import type { JsonObject } from '../../../api/index.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../kinds/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageColumn, ageOf, column, nameColumn, orNone, type Printer, wide } from './column.ts';

export const volumePrinter: Printer = {
  columns: [
    nameColumn,
    column('Capacity', 'How much the volume holds.'),
    column('Access Modes', 'How many nodes or pods may use it at once, and for what.'),
    column('Reclaim Policy', 'What becomes of it when its claim is gone.'),
    column('Status', 'Whether it is bound to a claim.'),
    column('Claim', 'Namespace and name of the claim it is bound to.'),
    column('StorageClass', 'The class of storage it belongs to.'),
    column('VolumeAttributesClass', 'The class its adjustable attributes come from.'),
    column('Reason', 'Why it is in its status, in one word for programs.'),
    ageColumn,
    wide('VolumeMode', 'Whether it holds files or is a bare device.'),
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
    column('Status', 'Whether the claim has found its volume.'),
    column('Volume', 'The volume it is bound to.'),
    column('Capacity', 'How much that volume holds.'),
    column('Access Modes', 'How many nodes or pods may use it at once, and for what.'),
    column('StorageClass', 'The class of storage it asks for.'),
    column('VolumeAttributesClass', 'The class its adjustable attributes come from.'),
    ageColumn,
    wide('VolumeMode', 'Whether it asks for files or a bare device.'),
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

/** An older way to name the class wins where it is still used. */
function classOf({ metadata }: StoredObject, name: string | undefined): string {
  return metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? name ?? '';
}

export const storageClassPrinter: Printer = {
  columns: [
    nameColumn,
    column('Provisioner', 'Who makes volumes of this class.'),
    column('ReclaimPolicy', 'What becomes of its volumes when their claims are gone.'),
    column('VolumeBindingMode', 'Whether volumes are made at once or when a pod needs them.'),
    column('AllowVolumeExpansion', 'Whether its volumes may grow.'),
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
    { ...column('Attacher', 'The driver that has to attach the volume.'), format: 'name' },
    column('PV', 'The volume to be attached.'),
    column('Node', 'The node it is to be attached to.'),
    column('Attached', 'Whether it is attached.', 'boolean'),
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
  columns: [nameColumn, column('Drivers', 'How many CSI drivers run on the node.', 'integer'), ageColumn],
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name,
    ((spec?.['drivers'] ?? []) as readonly unknown[]).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
};

export const csiDriverPrinter: Printer = {
  columns: [
    nameColumn,
    column('AttachRequired', 'Whether its volumes must be attached before they are mounted.', 'boolean'),
    column('PodInfoOnMount', 'Whether it is told which pod a mount is for.', 'boolean'),
    column('StorageCapacity', 'Whether pods are placed by the room it says it has.', 'boolean'),
    column('TokenRequests', 'For which audiences it gets tokens of the pods.'),
    column('RequiresRepublish', 'Whether it is called again and again for mounted volumes.', 'boolean'),
    column('Modes', 'Which kinds of volumes it serves.'),
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
