import { sameValue } from '../../api/index.ts';
import type { PersistentVolume, PersistentVolumeSpec } from '../../kinds/index.ts';
import { apiTime, parseQuantity, quantityMilliValue } from '../../lib/index.ts';
import { dnsSubdomain, pathWithoutBacksteps } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { forbiddenField, immutable, invalid, notSupported, oneOf, required } from '../validation/causes.ts';
import { changedPaths } from '../validation/changed-paths.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';

export const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
export const volumeModes = ['Block', 'Filesystem'];
/** The finalizer that protects a volume while a claim is bound to it. */
export const volumeProtection = 'kubernetes.io/pv-protection';

export const persistentVolumeStrategy: ResourceStrategy = {
  status: 'separate',
  prepare: prepared,
  admit: (object, write) =>
    write.verb === 'create' ? withProtectionFinalizer(object, volumeProtection) : object,
  validate: validatorFor(dnsSubdomain, (object, write) => [
    ...(write.subresource === 'status' ? [] : volumeCauses(object)),
    ...updateCauses(object, write),
  ]),
};

export function withProtectionFinalizer(object: StoredObject, finalizer: string): StoredObject {
  const { finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}

function asVolume(object: StoredObject): PersistentVolume {
  return object as unknown as PersistentVolume;
}

function prepared(object: StoredObject, { before, subresource, clock }: WriteContext): StoredObject {
  if (subresource === 'status') return withTransition(object, before, apiTime(clock.now()));
  const { spec = {} } = asVolume(object);
  const defaults = {
    persistentVolumeReclaimPolicy: spec.persistentVolumeReclaimPolicy ?? 'Retain',
    volumeMode: spec.volumeMode ?? 'Filesystem',
    ...(spec.hostPath === undefined
      ? {}
      : { hostPath: { ...spec.hostPath, type: spec.hostPath.type ?? '' } }),
  };
  const status =
    before === undefined
      ? { phase: 'Pending', lastPhaseTransitionTime: apiTime(clock.now()) }
      : before.status;
  return withFields(object, { spec: { ...object.spec, ...defaults }, status });
}

/** Sets lastPhaseTransitionTime when the phase changes, unless the client set it. */
function withTransition(object: StoredObject, before: StoredObject | undefined, now: string): StoredObject {
  if (object.status?.['phase'] === before?.status?.['phase']) return object;
  const given = object.status?.['lastPhaseTransitionTime'];
  const isSet = given !== undefined && given !== before?.status?.['lastPhaseTransitionTime'];
  return isSet ? object : { ...object, status: { ...object.status, lastPhaseTransitionTime: now } };
}

const sources = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
] as const satisfies readonly (keyof PersistentVolumeSpec)[];

function volumeCauses(object: StoredObject): readonly FieldCause[] {
  const spec = asVolume(object).spec ?? {};
  return [
    ...accessCauses(spec.accessModes ?? []),
    ...capacityCauses(spec.capacity ?? {}),
    ...oneOf('spec.persistentVolumeReclaimPolicy', spec.persistentVolumeReclaimPolicy, [
      'Delete',
      'Recycle',
      'Retain',
    ]),
    ...sourceCauses(spec),
    ...classNameCauses(spec.storageClassName),
    ...oneOf('spec.volumeMode', spec.volumeMode, volumeModes),
  ];
}

export function accessCauses(modes: readonly string[], detail?: string): readonly FieldCause[] {
  const field = 'spec.accessModes';
  const isMixed =
    modes.includes('ReadWriteOncePod') &&
    modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode));
  return [
    ...(modes.length === 0 ? [required(field, detail)] : []),
    ...modes.flatMap((mode) => (accessModes.includes(mode) ? [] : [notSupported(field, mode, accessModes)])),
    ...(isMixed ? [forbiddenField(field, 'may not use ReadWriteOncePod with other access modes')] : []),
  ];
}

function capacityCauses(capacity: Readonly<Record<string, string>>): readonly FieldCause[] {
  const field = 'spec.capacity';
  const names = Object.keys(capacity);
  const isUnsupported = !names.includes('storage') || names.length > 1;
  return [
    ...(names.length === 0 ? [required(field)] : []),
    ...(isUnsupported ? [notSupported(field, names.length === 0 ? null : capacity, ['storage'])] : []),
    ...Object.entries(capacity).flatMap(([name, amount]) => positiveCauses(`${field}[${name}]`, amount)),
  ];
}

export function positiveCauses(field: string, amount: string): readonly FieldCause[] {
  return quantityMilliValue(parseQuantity(amount)) > 0n
    ? []
    : [invalid(field, amount, 'must be greater than zero')];
}

export function classNameCauses(name = ''): readonly FieldCause[] {
  if (name === '') return [];
  return dnsSubdomain(name).map((message) => invalid('spec.storageClassName', name, message));
}

function sourceCauses(spec: PersistentVolumeSpec): readonly FieldCause[] {
  const [first, ...others] = sources.filter((source) => spec[source] !== undefined);
  if (first === undefined) return [required('spec', 'must specify a volume type')];
  return [
    ...others.map((source) => forbiddenField(`spec.${source}`, 'may not specify more than 1 volume type')),
    ...contentCauses(spec),
  ];
}

function contentCauses({
  hostPath,
  local,
  nfs,
  csi,
  nodeAffinity,
}: PersistentVolumeSpec): readonly FieldCause[] {
  const missing = [
    ...(hostPath !== undefined && hostPath.path === '' ? ['hostPath.path'] : []),
    ...(local !== undefined && local.path === '' ? ['local.path'] : []),
    ...(nfs !== undefined && nfs.server === '' ? ['nfs.server'] : []),
    ...(nfs !== undefined && nfs.path === '' ? ['nfs.path'] : []),
    ...(csi !== undefined && csi.driver === '' ? ['csi.driver'] : []),
    ...(csi !== undefined && csi.volumeHandle === '' ? ['csi.volumeHandle'] : []),
  ];
  const isLoose = local !== undefined && nodeAffinity?.required === undefined;
  return [
    ...missing.map((field) => required(`spec.${field}`)),
    ...['hostPath', 'local'].flatMap((source) =>
      backstepCauses(source, (source === 'local' ? local : hostPath)?.path),
    ),
    ...(isLoose ? [required('spec.nodeAffinity', 'Local volume requires node affinity')] : []),
  ];
}

function backstepCauses(source: string, path = ''): readonly FieldCause[] {
  return pathWithoutBacksteps(path).map((message) => invalid(`spec.${source}.path`, path, message));
}

function updateCauses(object: StoredObject, { before, subresource }: WriteContext): readonly FieldCause[] {
  if (before === undefined || subresource !== undefined) return [];
  const [old, spec] = [asVolume(before).spec ?? {}, asVolume(object).spec ?? {}];
  const changed = sources.filter((source) => !sameValue(old[source], spec[source]));
  const paths = changed.flatMap((source) => changedPaths(old[source], spec[source], source));
  return [
    ...(changed.length > 0
      ? [
          forbiddenField(
            'spec.persistentvolumesource',
            `spec.persistentvolumesource is immutable after creation\nchanged: ${paths.join(', ')}`,
          ),
        ]
      : []),
    ...immutable('volumeMode', old.volumeMode, spec.volumeMode),
  ];
}
