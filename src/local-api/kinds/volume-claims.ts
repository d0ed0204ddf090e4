import { type JsonObject, sameValue } from '../../api/index.ts';
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass } from '../../kinds/index.ts';
import { compareQuantities, parseQuantity } from '../../lib/index.ts';
import { dnsSubdomain } from '../../pods/validation/index.ts';
import {
  type FieldCause,
  forbidden,
  type ResourceStrategy,
  type StoredObject,
  type WriteContext,
} from '../api/index.ts';
import { forbiddenField, immutable, invalid, oneOf, required } from '../validation/causes.ts';
import { changedPaths } from '../validation/changed-paths.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';
import { persistentVolumeClaims, storageClasses } from './resources.ts';
import {
  accessCauses,
  classNameCauses,
  positiveCauses,
  volumeModes,
  withProtectionFinalizer,
} from './volumes.ts';

/** The finalizer that protects a claim while a pod uses it. */
export const claimProtection = 'kubernetes.io/pvc-protection';
const defaultClassMark = 'storageclass.kubernetes.io/is-default-class';

export const persistentVolumeClaimStrategy: ResourceStrategy = {
  status: 'separate',
  prepare: prepared,
  admit: admitted,
  validate: validateClaim,
};

const causesOf = validatorFor(dnsSubdomain, (object, write) => [
  ...(write.subresource === 'status' ? [] : claimCauses(object)),
  ...updateCauses(object, write),
]);

/** Validates a claim. A change of its size is checked only if everything else is valid. */
function validateClaim(object: StoredObject, write: WriteContext): readonly FieldCause[] {
  const causes = causesOf(object, write);
  if (causes.length === 0 && write.verb === 'update') checkExpansion(object, write);
  return causes;
}

function asClaim(object: StoredObject): PersistentVolumeClaim {
  return object as unknown as PersistentVolumeClaim;
}

function prepared(object: StoredObject, { before, subresource }: WriteContext): StoredObject {
  if (subresource === 'status') return object;
  const { spec = {} } = asClaim(object);
  const volumeMode = spec.volumeMode ?? 'Filesystem';
  const filled = withFields<JsonObject>({ ...spec, volumeMode }, dataSources(spec));
  return withFields(object, {
    spec: filled,
    status: before === undefined ? { phase: 'Pending' } : before.status,
  });
}

/**
 * Sets dataSource from dataSourceRef and the other way around. dataSource supports only claims and
 * snapshots; other values are removed.
 */
function dataSources(spec: PersistentVolumeClaimSpec): JsonObject {
  const { dataSource, dataSourceRef } = spec;
  if (dataSourceRef === undefined)
    return isKnownSource(dataSource) ? { dataSourceRef: dataSource } : { dataSource: undefined };
  if (dataSource !== undefined || dataSourceRef.namespace !== undefined) return {};
  return { dataSource: dataSourceRef };
}

function isKnownSource(source: PersistentVolumeClaimSpec['dataSource']): boolean {
  const { kind = '', apiGroup = '' } = source ?? {};
  return ['/PersistentVolumeClaim', 'snapshot.storage.k8s.io/VolumeSnapshot'].includes(`${apiGroup}/${kind}`);
}

/**
 * Gives a claim without a storage class the default class, the newest if several are marked as
 * default.
 */
function admitted(object: StoredObject, write: WriteContext): StoredObject {
  if (write.verb !== 'create') return object;
  const guarded = withProtectionFinalizer(object, claimProtection);
  if (asClaim(object).spec?.storageClassName !== undefined) return guarded;
  const [newest] = write.objects
    .all(storageClasses)
    .filter(({ metadata }) => metadata.annotations?.[defaultClassMark] === 'true')
    .toSorted((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1));
  if (newest === undefined) return guarded;
  return { ...guarded, spec: { ...guarded.spec, storageClassName: newest.metadata.name } };
}

/** A claim can be expanded only if its storage class allows it. */
function checkExpansion(object: StoredObject, { before, subresource, objects }: WriteContext): void {
  const [was, is] = [before && requestedStorage(before), requestedStorage(object)];
  if (subresource !== undefined || was === undefined || is === undefined || isAtLeast(was, is)) return;
  const name = asClaim(object).spec?.storageClassName ?? '';
  const found = objects.get(storageClasses, undefined, name) as unknown as StorageClass | undefined;
  if (found?.allowVolumeExpansion !== true)
    throw forbidden(
      { resource: persistentVolumeClaims, name: object.metadata.name },
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
}

export function requestedStorage(object: StoredObject): string | undefined {
  return asClaim(object).spec?.resources?.requests?.['storage'];
}

function claimCauses(object: StoredObject): readonly FieldCause[] {
  const { spec = {} } = asClaim(object);
  const field = 'spec.resources[storage]';
  const storage = requestedStorage(object);
  return [
    ...accessCauses(spec.accessModes ?? [], 'at least 1 access mode is required'),
    ...(storage === undefined ? [required(field)] : positiveCauses(field, storage)),
    ...classNameCauses(spec.storageClassName),
    ...oneOf('spec.volumeMode', spec.volumeMode, volumeModes),
    ...(spec.dataSource === undefined ? [] : sourceCauses('spec.dataSource', spec.dataSource)),
    ...(spec.dataSourceRef === undefined ? [] : sourceCauses('spec.dataSourceRef', spec.dataSourceRef)),
  ];
}

function sourceCauses(
  field: string,
  {
    name,
    kind,
    apiGroup = '',
  }: { readonly name: string; readonly kind: string; readonly apiGroup?: string | undefined },
): readonly FieldCause[] {
  const isForeign = apiGroup === '' && kind !== 'PersistentVolumeClaim';
  return [
    ...(name === '' ? [required(`${field}.name`)] : []),
    ...(kind === '' ? [required(`${field}.kind`)] : []),
    ...(isForeign
      ? [invalid(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")]
      : []),
  ];
}

function updateCauses(object: StoredObject, { before, subresource }: WriteContext): readonly FieldCause[] {
  if (before === undefined || subresource !== undefined) return [];
  const [old, spec] = [asClaim(before).spec ?? {}, asClaim(object).spec ?? {}];
  const [was, is] = [comparable(old, spec, before), comparable(spec, spec, before)];
  const detail = `spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\nchanged: ${changedPaths(was, is, 'spec').join(', ')}`;
  return [
    ...(sameValue(was, is) ? [] : [forbiddenField('spec', detail)]),
    ...shrinkCauses(before, object),
    ...immutable('volumeMode', old.volumeMode, spec.volumeMode),
  ];
}

/**
 * The spec for the comparison with the old one, without differences that are allowed: in an unset
 * volume or class, and in the size of a bound claim.
 */
function comparable(
  spec: PersistentVolumeClaimSpec,
  after: PersistentVolumeClaimSpec,
  before: StoredObject,
): PersistentVolumeClaimSpec {
  const { spec: old = {}, status } = asClaim(before);
  const isBound = status?.phase === 'Bound';
  const { storage: _, ...requests } = spec.resources?.requests ?? {};
  return {
    ...spec,
    volumeName: (old.volumeName ?? '') === '' ? after.volumeName : spec.volumeName,
    storageClassName: old.storageClassName === undefined ? after.storageClassName : spec.storageClassName,
    volumeAttributesClassName: isBound ? undefined : spec.volumeAttributesClassName,
    ...(isBound ? { resources: { ...spec.resources, requests } } : {}),
  };
}

function shrinkCauses(before: StoredObject, object: StoredObject): readonly FieldCause[] {
  const [was, is] = [requestedStorage(before), requestedStorage(object)];
  const has = asClaim(before).status?.capacity?.['storage'] ?? '0';
  if (was === undefined || is === undefined || isAtLeast(is, was)) return [];
  if (!isAtLeast(has, is)) return [];
  return [forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity')];
}

export function isAtLeast(amount: string, minimum: string): boolean {
  return compareQuantities(parseQuantity(amount), parseQuantity(minimum)) >= 0;
}
