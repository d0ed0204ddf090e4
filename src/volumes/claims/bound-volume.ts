import type { PersistentVolume, PersistentVolumeClaim, SecretReference, Volume } from '../../kinds/index.ts';
import { describeError, KubelingError } from '../../lib/index.ts';
import type { BoundClaim } from '../../objects/index.ts';
import { claimNameOf, type Pod } from '../../pods/index.ts';
import { isPastLimit } from '../csi/csi-attach.ts';
import type { CsiVolume, SecretName } from '../csi/csi-request.ts';
import { inTreeVolume, type TranslatedVolume } from '../csi/in-tree-volumes.ts';
import type { HostPath } from '../hostpath/host-path.ts';
import type { VolumePlugin } from '../manager/volume-metrics.ts';
import { containersOf } from '../manager/volume-paths.ts';
import { unusable } from '../projected/payload.ts';

/** A volume of a pod that is a PersistentVolume: all of it that must be known for as long as the pod is there. */
export interface BoundVolume {
  /** Of the PersistentVolume. */
  readonly name: string;
  readonly uid?: string | undefined;
  readonly claim: string;
  readonly source: VolumeSource;
  /** Whether containers are given it as the device it is. */
  readonly mode?: 'block' | undefined;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
  /** Whether it is meant for one pod at a time. */
  readonly use: 'one-pod' | 'any';
  /** A group its users are in. */
  readonly group?: number | undefined;
}

export type VolumeSource = ({ readonly kind: 'hostPath' } & HostPath) | LocalSource | NfsSource | CsiSource;

/** A directory or a disk of the machine. */
export interface LocalSource {
  readonly kind: 'local';
  readonly path: string;
  /** Of a disk. */
  readonly fsType?: string | undefined;
}

/** A directory that another machine has. */
export interface NfsSource {
  readonly kind: 'nfs';
  readonly server: string;
  readonly path: string;
}

/** A volume that a driver in a process of its own mounts. */
export interface CsiSource
  extends Pick<
    CsiVolume,
    | 'driver'
    | 'handle'
    | 'fsType'
    | 'attributes'
    | 'accessMode'
    | 'stageSecret'
    | 'publishSecret'
    | 'expandSecret'
    | 'origin'
  > {
  readonly kind: 'csi';
}

/** What every PersistentVolume may have; the one field besides says where its content is. */
const sharedFields: ReadonlySet<string> = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
]);

const optionsAnnotation = 'volume.beta.kubernetes.io/mount-options';
const groupAnnotation = 'pv.beta.kubernetes.io/gid';
const filesystem = 'Filesystem';

/** Throws, in the words for the pod's event, where the pod may not have the claim at all or wants it in another way. */
export function checkUse(pod: Pod, volume: Volume, { claim, volume: { spec } }: BoundClaim): void {
  if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
    const { namespace, name } = pod.metadata;
    const what = `PVC ${namespace}/${claim.metadata?.name ?? ''}`;
    throw unusable(`${what} was not created for pod ${namespace}/${name} (pod is not owner)`);
  }
  const mode = spec?.volumeMode ?? filesystem;
  const isUsed = (field: 'volumeMounts' | 'volumeDevices') =>
    containersOf(pod).some((container) => container[field]?.some(({ name }) => name === volume.name));
  const wrong = mode === filesystem ? 'volumeDevices' : 'volumeMounts';
  if (isUsed(wrong))
    throw unusable(`volume ${volume.name} has volumeMode ${mode}, but is specified in ${wrong}`);
}

function isOwnedBy({ metadata }: PersistentVolumeClaim, { metadata: { uid } }: Pod): boolean {
  return metadata?.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) === true;
}

export function isBlock({ spec }: PersistentVolume): boolean {
  return (spec?.volumeMode ?? filesystem) !== filesystem;
}

/** Where the content is, or undefined for a kind that this node cannot mount. */
export function sourceOf(volume: PersistentVolume): VolumeSource | undefined {
  const { hostPath, local, nfs, accessModes = [] } = volume.spec ?? {};
  const csi: TranslatedVolume | undefined = volume.spec?.csi ?? inTreeVolume(volume);
  if (hostPath !== undefined) return { kind: 'hostPath', path: hostPath.path, type: hostPath.type };
  if (csi !== undefined) return csiSource(csi, csi.accessMode ?? accessModes[0] ?? 'ReadWriteOnce');
  if (nfs !== undefined) return { kind: 'nfs', server: nfs.server, path: nfs.path };
  if (local === undefined) return undefined;
  const { path, fsType } = local;
  return { kind: 'local', path, ...(fsType === undefined ? {} : { fsType }) };
}

function csiSource(csi: TranslatedVolume, accessMode: string): CsiSource {
  return {
    kind: 'csi',
    driver: csi.driver,
    handle: csi.volumeHandle,
    fsType: csi.fsType ?? '',
    attributes: csi.volumeAttributes ?? {},
    accessMode,
    ...(csi.origin === undefined ? {} : { origin: csi.origin }),
    ...secretNamed('stageSecret', csi.nodeStageSecretRef),
    ...secretNamed('publishSecret', csi.nodePublishSecretRef),
    ...secretNamed('expandSecret', csi.nodeExpandSecretRef),
  };
}

function secretNamed(
  field: 'stageSecret' | 'publishSecret' | 'expandSecret',
  ref: SecretReference | undefined,
): { readonly [Field in typeof field]?: SecretName } {
  return ref === undefined ? {} : { [field]: { namespace: ref.namespace ?? '', name: ref.name ?? '' } };
}

/** As the field is called. */
export function kindOfVolume({ spec = {} }: PersistentVolume): string {
  const set = Object.entries(spec).find(([field, value]) => !sharedFields.has(field) && value !== undefined);
  return set?.[0] ?? 'unknown';
}

export function boundVolume(
  { persistentVolumeClaim }: Volume,
  { claim, volume }: BoundClaim,
  source: VolumeSource,
): BoundVolume {
  const { name = '', uid, annotations = {} } = volume.metadata ?? {};
  const { accessModes = [], mountOptions = [] } = volume.spec ?? {};
  const options = annotations[optionsAnnotation]?.split(',') ?? mountOptions;
  const group = Number.parseInt(annotations[groupAnnotation] ?? '', 10);
  return {
    name,
    ...(uid === undefined ? {} : { uid }),
    claim: claim.metadata?.name ?? '',
    source,
    ...(isBlock(volume) ? { mode: 'block' as const } : {}),
    readOnly: persistentVolumeClaim?.readOnly === true,
    mountOptions: options.filter((option) => option !== ''),
    use: accessModes.length === 1 && accessModes[0] === 'ReadWriteOncePod' ? 'one-pod' : 'any',
    ...(Number.isSafeInteger(group) && group >= 0 ? { group } : {}),
  };
}

/**
 * As the one place is to have it that all volumes of the pod by the same claim share: what one of them may write to, the
 * place lets write. Containers are given each as it is.
 */
export function asShared(pod: Pod, bound: BoundVolume): BoundVolume {
  // Those too that no container uses yet: one that comes later may.
  const sharing = (pod.spec.volumes ?? []).filter((volume) => claimNameOf(pod, volume) === bound.claim);
  const readOnly = sharing.every(({ persistentVolumeClaim }) => persistentVolumeClaim?.readOnly === true);
  return { ...bound, readOnly: bound.readOnly && readOnly };
}

/** As its driver is to have it. */
export function csiVolume(
  { name, readOnly, mountOptions, claim, use, mode }: Omit<BoundVolume, 'source'>,
  { kind: _kind, ...source }: CsiSource,
): CsiVolume {
  const shownAs = mode === 'block' ? ('device' as const) : undefined;
  return { ...source, name, readOnly, mountOptions, claim, use, shownAs, mode: 'Persistent' };
}

/** Whether notes of an earlier process can be trusted to be what they should. */
export function isBoundVolume(value: unknown): value is BoundVolume {
  if (typeof value !== 'object' || value === null) return false;
  const { name, claim, source, readOnly, mountOptions, use, group } = value as Partial<BoundVolume>;
  return (
    [name, claim].every(isText) &&
    isSource(source) &&
    typeof readOnly === 'boolean' &&
    Array.isArray(mountOptions) &&
    mountOptions.every((option) => typeof option === 'string') &&
    (use === 'one-pod' || use === 'any') &&
    (group === undefined || Number.isSafeInteger(group))
  );
}

function isSource(source: Partial<VolumeSource> | undefined): boolean {
  if (source?.kind === 'local' || source?.kind === 'hostPath') return isText(source.path);
  if (source?.kind === 'nfs') return [source.server, source.path].every(isText);
  if (source?.kind !== 'csi') return false;
  const { driver, handle, fsType, attributes, accessMode } = source as Partial<CsiSource>;
  return (
    [driver, handle, accessMode].every(isText) &&
    typeof fsType === 'string' &&
    typeof attributes === 'object' &&
    attributes !== null
  );
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Why a claimed volume cannot be had. */
export type ClaimProblem =
  /** It is not known what is to be mounted. */
  | { readonly kind: 'unprocessed'; readonly volume: string; readonly message: string }
  | {
      readonly kind: 'unmounted';
      readonly volume: string;
      readonly message: string;
      /** Of the event. */
      readonly reason: 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume';
      /** When it may be tried again, if sooner than what failed otherwise. */
      readonly retryAtMs?: number | undefined;
      /** Whether the node has no room for it, and will not have any soon. */
      readonly room?: 'none' | undefined;
    };

/** Of the volume in the pod, by what its making has failed with. */
export function problemOf(volume: string, error: unknown): ClaimProblem {
  const { stage, retryAtMs } = error instanceof KubelingError ? error.details : {};
  const message = describeError(error);
  if (typeof stage !== 'string') return { kind: 'unprocessed', volume, message };
  return {
    kind: 'unmounted',
    volume,
    message,
    reason: reasonAt(stage),
    ...(typeof retryAtMs === 'number' ? { retryAtMs } : {}),
    ...(isPastLimit(error) ? { room: 'none' as const } : {}),
  };
}

function reasonAt(stage: string): 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume' {
  if (stage.startsWith('AttachVolume')) return 'FailedAttachVolume';
  return stage.startsWith('MapVolume') ? 'FailedMapVolume' : 'FailedMount';
}

/** Where a volume is to be found. */
export type ClaimVolume =
  | {
      readonly kind: 'path';
      readonly hostPath: string;
      readonly readOnly: boolean;
      readonly relabel: boolean;
      /** What parts of it are kept under. */
      readonly specName: string;
      /** As metrics call it, where its place does not say. */
      readonly plugin?: VolumePlugin | undefined;
    }
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      /** As above. */
      readonly plugin?: VolumePlugin | undefined;
    };
