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

/** A PersistentVolume bound for a pod, with all data needed for the lifetime of the pod. */
export interface BoundVolume {
  /** The name of the PersistentVolume. */
  readonly name: string;
  readonly uid?: string | undefined;
  readonly claim: string;
  readonly source: VolumeSource;
  /** `block` when containers get the volume as a raw device. */
  readonly mode?: 'block' | undefined;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
  /** `one-pod` when the access mode is ReadWriteOncePod. */
  readonly use: 'one-pod' | 'any';
  /** Supplementary group for the containers, from the annotation pv.beta.kubernetes.io/gid. */
  readonly group?: number | undefined;
}

export type VolumeSource = ({ readonly kind: 'hostPath' } & HostPath) | LocalSource | NfsSource | CsiSource;

/** Source of a local volume: a directory or a disk of the machine. */
export interface LocalSource {
  readonly kind: 'local';
  readonly path: string;
  /** File system type of a disk; undefined for a directory or the default type. */
  readonly fsType?: string | undefined;
}

/** Source of an NFS volume. */
export interface NfsSource {
  readonly kind: 'nfs';
  readonly server: string;
  readonly path: string;
}

/** Source of a volume that a CSI driver mounts. */
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

/** Fields that every PersistentVolumeSpec may have; the only other field is the volume source. */
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

/**
 * Throws the message of the pod event when the pod may not use the claim or uses it in the wrong
 * volume mode.
 */
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

/** Returns the volume source; undefined for a volume type that this node cannot mount. */
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

/** Returns the name of the volume source field, which is the volume type. */
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
 * Combines all volumes of the pod that use the same claim into one shared mount, which is writable
 * if any of them is. Containers still get each volume as its spec requires.
 */
export function asShared(pod: Pod, bound: BoundVolume): BoundVolume {
  // Volumes that no container uses are included, because an ephemeral container may use them later.
  const sharing = (pod.spec.volumes ?? []).filter((volume) => claimNameOf(pod, volume) === bound.claim);
  const readOnly = sharing.every(({ persistentVolumeClaim }) => persistentVolumeClaim?.readOnly === true);
  return { ...bound, readOnly: bound.readOnly && readOnly };
}

/** Converts the bound volume to the data for requests to its CSI driver. */
export function csiVolume(
  { name, readOnly, mountOptions, claim, use, mode }: Omit<BoundVolume, 'source'>,
  { kind: _kind, ...source }: CsiSource,
): CsiVolume {
  const shownAs = mode === 'block' ? ('device' as const) : undefined;
  return { ...source, name, readOnly, mountOptions, claim, use, shownAs, mode: 'Persistent' };
}

/** Whether a value from a checkpoint of a previous process is a valid BoundVolume. */
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

/** Why a claimed volume cannot be mounted. */
export type ClaimProblem =
  /** The claim's volume source could not be determined, so no mount was attempted. */
  | { readonly kind: 'unprocessed'; readonly volume: string; readonly message: string }
  | {
      readonly kind: 'unmounted';
      readonly volume: string;
      readonly message: string;
      /** Reason and message of the pod event. */
      readonly reason: 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume';
      /** Time of the next mount attempt, when it is earlier than the regular back-off. */
      readonly retryAtMs?: number | undefined;
      /**
       * `none` when the volume cannot be attached, because the node's attach limit is reached;
       * otherwise undefined.
       */
      readonly room?: 'none' | undefined;
    };

/** Converts a mount error to a ClaimProblem of the pod's volume. */
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

/** Location of a claimed volume on the node. */
export type ClaimVolume =
  | {
      readonly kind: 'path';
      readonly hostPath: string;
      readonly readOnly: boolean;
      readonly relabel: boolean;
      /** Name of the PersistentVolume, which is the name of its directory. */
      readonly specName: string;
      /** Plugin name for metrics, when it cannot be derived from the path. */
      readonly plugin?: VolumePlugin | undefined;
    }
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      /** Plugin name for metrics, when it cannot be derived from the path. */
      readonly plugin?: VolumePlugin | undefined;
    };
