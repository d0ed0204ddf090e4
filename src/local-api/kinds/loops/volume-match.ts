import type { LabelSelector, PersistentVolume, PersistentVolumeClaim } from '../../../kinds/index.ts';
import { compareQuantities, parseQuantity } from '../../../lib/index.ts';
import type { StoredObject } from '../../core/index.ts';
import { isAtLeast, requestedStorage } from '../volume-claims.ts';

/** Which volume a claim gets. */

export function asVolume(object: StoredObject): PersistentVolume {
  return object as unknown as PersistentVolume;
}

export function asClaim(object: StoredObject): PersistentVolumeClaim {
  return object as unknown as PersistentVolumeClaim;
}

/** Whose a volume is, or is meant to be. */
export function isClaimedBy(volume: StoredObject, { metadata }: StoredObject): boolean {
  const ref = asVolume(volume).spec?.claimRef;
  if (ref === undefined || ref.name !== metadata.name || ref.namespace !== metadata.namespace) return false;
  return ref.uid === undefined || ref.uid === '' || ref.uid === metadata.uid;
}

function isFree(volume: StoredObject): boolean {
  return asVolume(volume).spec?.claimRef === undefined && volume.metadata.deletionTimestamp === undefined;
}

/** Why a volume that a claim names cannot be its own; undefined if it can. */
export function mismatch(claim: StoredObject, volume: StoredObject): string | undefined {
  const [wants, has] = [asClaim(claim).spec ?? {}, asVolume(volume).spec ?? {}];
  if (!isFree(volume) && !isClaimedBy(volume, claim)) return 'volume is already bound to another claim';
  if ((wants.storageClassName ?? '') !== (has.storageClassName ?? ''))
    return 'storageClassName does not match';
  if ((wants.volumeMode ?? 'Filesystem') !== (has.volumeMode ?? 'Filesystem'))
    return 'volumeMode does not match';
  if (!(wants.accessModes ?? []).every((mode) => (has.accessModes ?? []).includes(mode)))
    return 'accessModes do not match';
  return isAtLeast(capacityOf(volume), requestedStorage(claim) ?? '0')
    ? undefined
    : 'requested PV is too small';
}

function capacityOf(volume: StoredObject): string {
  return asVolume(volume).spec?.capacity?.['storage'] ?? '0';
}

/** The volume that is meant for the claim, or else the smallest that will do. */
export function matchFor(claim: StoredObject, volumes: readonly StoredObject[]): StoredObject | undefined {
  const meant = volumes.find((volume) => isClaimedBy(volume, claim));
  if (meant !== undefined) return mismatch(claim, meant) === undefined ? meant : undefined;
  const selector = asClaim(claim).spec?.selector;
  const fitting = volumes.filter(
    (volume) => isFree(volume) && selects(selector, volume) && mismatch(claim, volume) === undefined,
  );
  return fitting.toSorted((a, b) =>
    compareQuantities(parseQuantity(capacityOf(a)), parseQuantity(capacityOf(b))),
  )[0];
}

function selects(selector: LabelSelector | undefined, { metadata: { labels = {} } }: StoredObject): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      if (operator === 'Exists') return value !== undefined;
      if (operator === 'DoesNotExist') return value === undefined;
      const isAmong = value !== undefined && values.includes(value);
      return operator === 'In' ? isAmong : !isAmong;
    })
  );
}
