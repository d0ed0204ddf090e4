import { apiVersionOf } from '../../api/index.ts';
import type {
  LabelSelector,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import { compareQuantities, parseQuantity } from '../../lib/index.ts';
import { type Controller, referencesOf, type ServerContext, type StoredObject } from '../api/index.ts';
import {
  persistentVolumeClaims as claims,
  pods,
  storageClasses,
  persistentVolumes as volumes,
} from '../kinds/resources.ts';
import { claimProtection, isAtLeast, requestedStorage } from '../kinds/volume-claims.ts';
import { volumeProtection } from '../kinds/volumes.ts';
import { podOwnerOf } from './ephemeral-claims.ts';
import type { ControllerClient } from './keyed-controller.ts';
import { keyedController } from './keyed-controller.ts';

export interface VolumeBindingDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
}

const yes = 'yes';
const boundByUs = 'pv.kubernetes.io/bound-by-controller';
const bindCompleted = 'pv.kubernetes.io/bind-completed';
const everything = 'all';

/**
 * Binds claims to the volume they name or to a matching one, updates the phases of both and removes
 * protection finalizers:
 *
 *     volume: Pending ──> Available ──> Bound ──claim deleted──> Released
 *     claim: Pending ──> Bound ──volume deleted──> Lost
 */
export function volumeBindingController(deps: VolumeBindingDeps): Controller {
  const watched = [claims, volumes, storageClasses].map(({ plural }) => plural);
  return keyedController({
    name: 'volume-binding',
    context: deps.context,
    log: deps.log,
    initialKeys: () => [everything],
    keysFor: ({ type, resource, object }) => {
      if (watched.includes(resource.plural)) return [everything];
      if (resource.plural !== pods.plural || (type === 'MODIFIED' && !isOver(object))) return [];
      return claimNames(object).size > 0 ? [everything] : [];
    },
    reconcile: () => {
      bindAll(deps);
      return undefined;
    },
  });
}

function claimNames(pod: StoredObject): ReadonlySet<string> {
  return referencesOf(pod).claims;
}

function isOver({ status }: StoredObject): boolean {
  return status?.['phase'] === 'Succeeded' || status?.['phase'] === 'Failed';
}

/** A single node has few volumes, so all of them are reconciled after each change. */
function bindAll(deps: VolumeBindingDeps): void {
  const { objects } = deps.context;
  for (const claim of objects.all(claims)) reconcileClaim(deps, claim);
  for (const volume of objects.all(volumes)) reconcileVolume(deps, volume);
}

function reconcileClaim(deps: VolumeBindingDeps, claim: StoredObject): void {
  if (claim.metadata.deletionTimestamp !== undefined) {
    releaseClaim(deps, claim);
    return;
  }
  const { objects } = deps.context;
  const named = asClaim(claim).spec?.volumeName ?? '';
  const isDone = claim.metadata.annotations?.[bindCompleted] === yes;
  if (named === '') {
    const found = isBindingAllowed(deps, claim) ? matchFor(claim, objects.all(volumes)) : undefined;
    if (found !== undefined) bind(deps, claim, found, 'chosen');
    return;
  }
  const volume = objects.get(volumes, undefined, named);
  if (volume === undefined) {
    if (isDone) markLost(deps, claim);
  } else if (isDone ? isClaimedBy(volume, claim) : mismatch(claim, volume) === undefined)
    bind(deps, claim, volume, 'named');
  else if (isDone) markLost(deps, claim);
}

/** WaitForFirstConsumer delays the binding until a pod uses the claim. */
function isBindingAllowed({ context: { objects } }: VolumeBindingDeps, claim: StoredObject): boolean {
  const name = asClaim(claim).spec?.storageClassName ?? '';
  const found = objects.get(storageClasses, undefined, name) as unknown as StorageClass | undefined;
  if (found?.volumeBindingMode !== 'WaitForFirstConsumer') return true;
  const { namespace, name: claimName } = claim.metadata;
  return objects.all(pods, namespace).some((pod) => claimNames(pod).has(claimName));
}

function bind(
  deps: VolumeBindingDeps,
  claim: StoredObject,
  volume: StoredObject,
  how: 'chosen' | 'named',
): void {
  const bound = boundVolume(deps, claim, volume);
  boundClaim(deps, claim, bound, how);
}

function boundVolume({ client }: VolumeBindingDeps, claim: StoredObject, volume: StoredObject): StoredObject {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const before = asVolume(volume).spec?.claimRef;
  const isNew = before === undefined;
  const claimRef = {
    kind: claim.kind,
    apiVersion: apiVersionOf(claims),
    namespace,
    name,
    uid,
    resourceVersion,
  };
  const held =
    before?.uid === uid
      ? volume
      : client.update(volumes, {
          ...(isNew ? annotated(volume, boundByUs) : volume),
          spec: { ...volume.spec, claimRef },
        });
  return inPhase(client, held, 'Bound');
}

function annotated(object: StoredObject, name: string): StoredObject {
  const annotations = { ...object.metadata.annotations, [name]: yes };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function boundClaim(
  { client }: VolumeBindingDeps,
  claim: StoredObject,
  volume: StoredObject,
  how: 'chosen' | 'named',
): void {
  const marked = annotated(how === 'chosen' ? annotated(claim, boundByUs) : claim, bindCompleted);
  const bound = { ...marked, spec: { ...claim.spec, volumeName: volume.metadata.name } };
  const isDone = claim.metadata.annotations?.[bindCompleted] === yes;
  const named = isDone ? claim : client.update(claims, bound);
  if (named.status?.['phase'] === 'Bound') return;
  const { accessModes, capacity } = asVolume(volume).spec ?? {};
  client.update(
    claims,
    { ...named, status: { ...named.status, phase: 'Bound', accessModes, capacity } },
    'status',
  );
}

function inPhase(client: ControllerClient, volume: StoredObject, phase: string): StoredObject {
  if (volume.status?.['phase'] === phase) return volume;
  const { lastPhaseTransitionTime: _, ...status } = volume.status ?? {};
  return client.update(volumes, { ...volume, status: { ...status, phase } }, 'status');
}

function markLost({ client }: VolumeBindingDeps, claim: StoredObject): void {
  if (claim.status?.['phase'] === 'Lost') return;
  client.update(claims, { ...claim, status: { ...claim.status, phase: 'Lost' } }, 'status');
}

function reconcileVolume(deps: VolumeBindingDeps, volume: StoredObject): void {
  const { client, context } = deps;
  const ref = asVolume(volume).spec?.claimRef;
  if (volume.metadata.deletionTimestamp !== undefined && !isInUse(deps, volume)) {
    dropFinalizer(client, volumes, volume, volumeProtection);
    return;
  }
  if (ref === undefined) {
    inPhase(client, volume, 'Available');
    return;
  }
  const claim = context.objects.get(claims, ref.namespace, ref.name ?? '');
  const isOwn = claim !== undefined && claim.metadata.uid === ref.uid;
  if (!isOwn) inPhase(client, volume, (ref.uid ?? '') === '' ? 'Available' : 'Released');
}

function isInUse({ context }: VolumeBindingDeps, volume: StoredObject): boolean {
  const ref = asVolume(volume).spec?.claimRef;
  if (volume.status?.['phase'] !== 'Bound' || ref === undefined) return false;
  return context.objects.get(claims, ref.namespace, ref.name ?? '')?.metadata.uid === ref.uid;
}

/** Removes the protection finalizer of a claim when no running pod uses it. */
function releaseClaim({ context, client }: VolumeBindingDeps, claim: StoredObject): void {
  const { name, namespace } = claim.metadata;
  const users = context.objects
    .all(pods, namespace)
    .filter((pod) => claimNames(pod).has(name) && !isOver(pod) && (pod.spec?.['nodeName'] ?? '') !== '')
    .filter((pod) => !isForPreviousClaim(claim, pod));
  if (users.length === 0) dropFinalizer(client, claims, claim, claimProtection);
}

/** A pod cannot use an ephemeral claim of a previous pod of the same name. */
function isForPreviousClaim(claim: StoredObject, { metadata: { name, uid } }: StoredObject): boolean {
  const owner = podOwnerOf(claim);
  return owner !== undefined && owner.name === name && owner.uid !== uid;
}

function dropFinalizer(
  client: ControllerClient,
  resource: typeof claims | typeof volumes,
  object: StoredObject,
  finalizer: string,
): void {
  const { finalizers = [], ...rest } = object.metadata;
  if (!finalizers.includes(finalizer)) return;
  const left = finalizers.filter((name) => name !== finalizer);
  const metadata = left.length > 0 ? { ...rest, finalizers: left } : rest;
  client.update(resource, { ...object, metadata });
}

export function asVolume(object: StoredObject): PersistentVolume {
  return object as unknown as PersistentVolume;
}

export function asClaim(object: StoredObject): PersistentVolumeClaim {
  return object as unknown as PersistentVolumeClaim;
}

/** Whether the claimRef of a volume names the claim, with the same UID if it has one. */
function isClaimedBy(volume: StoredObject, { metadata }: StoredObject): boolean {
  const ref = asVolume(volume).spec?.claimRef;
  if (ref === undefined || ref.name !== metadata.name || ref.namespace !== metadata.namespace) return false;
  return ref.uid === undefined || ref.uid === '' || ref.uid === metadata.uid;
}

function isFree(volume: StoredObject): boolean {
  return asVolume(volume).spec?.claimRef === undefined && volume.metadata.deletionTimestamp === undefined;
}

/** Why a volume cannot be bound to a claim that names it; undefined if it can be bound. */
export function mismatch(claim: StoredObject, volume: StoredObject): string | undefined {
  const [requested, has] = [asClaim(claim).spec ?? {}, asVolume(volume).spec ?? {}];
  if (!isFree(volume) && !isClaimedBy(volume, claim)) return 'volume is already bound to another claim';
  if ((requested.storageClassName ?? '') !== (has.storageClassName ?? ''))
    return 'storageClassName does not match';
  if ((requested.volumeMode ?? 'Filesystem') !== (has.volumeMode ?? 'Filesystem'))
    return 'volumeMode does not match';
  if (!(requested.accessModes ?? []).every((mode) => (has.accessModes ?? []).includes(mode)))
    return 'accessModes do not match';
  return isAtLeast(capacityOf(volume), requestedStorage(claim) ?? '0')
    ? undefined
    : 'requested PV is too small';
}

function capacityOf(volume: StoredObject): string {
  return asVolume(volume).spec?.capacity?.['storage'] ?? '0';
}

/** Returns the volume whose claimRef names the claim, or else the smallest matching one. */
function matchFor(claim: StoredObject, volumes: readonly StoredObject[]): StoredObject | undefined {
  const claimed = volumes.find((volume) => isClaimedBy(volume, claim));
  if (claimed !== undefined) return mismatch(claim, claimed) === undefined ? claimed : undefined;
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
