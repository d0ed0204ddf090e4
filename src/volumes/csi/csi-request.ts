import type { CSIDriver, Secret } from '../../kinds/index.ts';
import { apiTime, describeError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { checkedFsType, checkedMountFlags } from '../manager/mount-options.ts';
import { unusable } from '../projected/payload.ts';
import type { CsiApi } from './csi-attach.ts';
import type { AccessModeKind, NodeCapability, VolumeCapability } from './gen/node.ts';

/** Data of a volume for requests to its CSI driver. */
export interface CsiVolume {
  /** Name of the PersistentVolume or of the inline volume. */
  readonly name: string;
  readonly driver: string;
  readonly handle: string;
  readonly mode: 'Persistent' | 'Ephemeral';
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  readonly mountOptions: readonly string[];
  /** First access mode of the volume. */
  readonly accessMode: string;
  readonly stageSecret?: SecretName | undefined;
  readonly publishSecret?: SecretName | undefined;
  readonly expandSecret?: SecretName | undefined;
  /** `device` when containers get the volume as a raw device. */
  readonly shownAs?: 'device' | undefined;
  /** `one-pod` when the access mode is ReadWriteOncePod. */
  readonly use?: 'one-pod' | 'any' | undefined;
  /** `in-tree` when the volume is a migrated in-tree volume. */
  readonly origin?: 'in-tree' | undefined;
  /** Name of the PersistentVolumeClaim; undefined for an inline volume. */
  readonly claim?: string | undefined;
}

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

const plainModes: Readonly<Record<string, AccessModeKind>> = {
  ReadWriteOnce: 'SINGLE_NODE_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_WRITER',
  ReadOnlyMany: 'MULTI_NODE_READER_ONLY',
  ReadWriteMany: 'MULTI_NODE_MULTI_WRITER',
};

/** CSI access modes for drivers with the capability SINGLE_NODE_MULTI_WRITER. */
const finerModes: Readonly<Record<string, AccessModeKind>> = {
  ...plainModes,
  ReadWriteOnce: 'SINGLE_NODE_MULTI_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_SINGLE_WRITER',
};

/**
 * Returns the volume capability of CSI requests. Throws VOLUME_UNUSABLE for values that a driver
 * could read as several types or flags.
 */
export function capabilityOf(
  { accessMode: name, fsType, mountOptions, shownAs }: CsiVolume,
  can: ReadonlySet<NodeCapability>,
  { spec }: Pod,
): VolumeCapability {
  const modes = can.has('SINGLE_NODE_MULTI_WRITER') ? finerModes : plainModes;
  const accessMode = { mode: modes[name] ?? ('UNKNOWN' as const) };
  if (shownAs === 'device') return { block: {}, mount: undefined, accessMode };
  const group = can.has('VOLUME_MOUNT_GROUP') ? spec.securityContext?.fsGroup : undefined;
  return {
    block: undefined,
    mount: {
      fsType: checkedFsType(fsType),
      mountFlags: checkedMountFlags(mountOptions),
      volumeMountGroup: group === undefined ? '' : `${group}`,
    },
    accessMode,
  };
}

/** Returns the pod info in the publish request, for drivers with podInfoOnMount. */
export function podInfo({ metadata, spec }: Pod, mode: CsiVolume['mode']): Readonly<Record<string, string>> {
  return {
    'csi.storage.k8s.io/pod.name': metadata.name,
    'csi.storage.k8s.io/pod.namespace': metadata.namespace,
    'csi.storage.k8s.io/pod.uid': metadata.uid,
    'csi.storage.k8s.io/serviceAccount.name': spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': `${mode === 'Ephemeral'}`,
  };
}

/**
 * Returns the group that the kubelet must set on the files of the volume; undefined when it sets
 * none.
 */
export function groupFor(
  { spec: { securityContext } }: Pod,
  { readOnly, fsType, mode, accessMode }: CsiVolume,
  can: ReadonlySet<NodeCapability>,
  driver: CSIDriver | undefined,
): number | undefined {
  const policy = driver?.spec?.fsGroupPolicy ?? 'ReadWriteOnceWithFSType';
  if (readOnly || policy === 'None' || can.has('VOLUME_MOUNT_GROUP')) return undefined;
  const isSingleNode = mode === 'Ephemeral' || ['ReadWriteOnce', 'ReadWriteOncePod'].includes(accessMode);
  return policy === 'File' || (fsType !== '' && isSingleNode) ? securityContext?.fsGroup : undefined;
}

/** Decodes the values of a Secret. Never throws: invalid UTF-8 becomes replacement characters. */
export function textsOf({ data = {} }: Secret): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}

const tokensKey = 'csi.storage.k8s.io/serviceAccount.tokens';

/** Reads the Secret to which the volume refers; rejects when it does not exist. */
export async function secretsFor(
  api: CsiApi | undefined,
  what: string,
  ref: SecretName | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (ref === undefined) return {};
  const failed = `fetching ${what} ${ref.namespace}/${ref.name} failed`;
  const found = await api?.secret(ref.namespace, ref.name, signal).catch((error: unknown) => {
    throw unusable(`${failed}: ${describeError(error)}`, error);
  });
  if (found === undefined) throw unusable(`${failed}: secrets "${ref.name}" not found`);
  return textsOf(found);
}

/** Requests the service account tokens that the CSIDriver object lists. */
export async function tokensFor(
  api: CsiApi | undefined,
  { metadata, spec: { serviceAccountName = '' } }: Pod,
  driver: CSIDriver | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const { tokenRequests = [] } = driver?.spec ?? {};
  if (tokenRequests.length === 0 || api === undefined) return {};
  const { namespace, name, uid } = metadata;
  const issued: Record<string, { readonly token: string; readonly expirationTimestamp: string }> = {};
  for (const { audience, expirationSeconds } of tokenRequests) {
    const options = expirationSeconds === undefined ? {} : { expirationSeconds: Number(expirationSeconds) };
    const request = {
      namespace,
      serviceAccount: serviceAccountName,
      audience,
      pod: { name, uid },
      ...options,
    };
    const { token, expiresMs } = await api.tokens.get(request, signal);
    issued[audience] = { token, expirationTimestamp: apiTime(expiresMs) };
  }
  return { [tokensKey]: JSON.stringify(issued) };
}

/**
 * Throws when the CSIDriver object does not allow the volume's mode: a driver supports inline
 * volumes only if the object lists Ephemeral; without a list it supports only Persistent.
 */
export function checkMode({ mode, driver }: CsiVolume, found: CSIDriver | undefined): void {
  const modes = found?.spec.volumeLifecycleModes ?? [];
  const supported = modes.length === 0 ? ['Persistent'] : modes;
  if (supported.includes(mode)) return;
  const known =
    found === undefined
      ? 'no CSIDriver object'
      : `only supports [${supported.map((one) => JSON.stringify(one)).join(' ')}]`;
  throw unusable(
    `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode ${JSON.stringify(mode)} not supported by driver ${driver} (${known})`,
  );
}
