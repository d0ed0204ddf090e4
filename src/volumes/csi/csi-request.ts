import type { CSIDriver, Secret } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { checkedFsType, checkedMountFlags } from '../manager/mount-options.ts';
import type { AccessModeKind, NodeCapability, VolumeCapability } from './gen/node.ts';

/** A volume as its driver is to mount it. */
export interface CsiVolume {
  /** Of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  readonly driver: string;
  readonly handle: string;
  readonly mode: 'Persistent' | 'Ephemeral';
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  readonly mountOptions: readonly string[];
  /** The first that the volume has. */
  readonly accessMode: string;
  readonly stageSecret?: SecretName | undefined;
  readonly publishSecret?: SecretName | undefined;
  readonly expandSecret?: SecretName | undefined;
  /** Whether containers are given it as the device it is, rather than what is on it. */
  readonly shownAs?: 'device' | undefined;
  /** Whether it is meant for one pod at a time. */
  readonly use?: 'one-pod' | 'any' | undefined;
  /** Whether it is described in the words of the time before there were drivers. */
  readonly origin?: 'in-tree' | undefined;
  /** By which the pod has it; undefined for one that the pod describes itself. */
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

/** What drivers understand that tell one writer from several on a node. */
const finerModes: Readonly<Record<string, AccessModeKind>> = {
  ...plainModes,
  ReadWriteOnce: 'SINGLE_NODE_MULTI_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_SINGLE_WRITER',
};

/** Throws VOLUME_UNUSABLE for what a driver could take for more than one type or flag. */
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

/** What a driver is told of the pod if it wants to know. */
export function podInfo({ metadata, spec }: Pod, mode: CsiVolume['mode']): Readonly<Record<string, string>> {
  return {
    'csi.storage.k8s.io/pod.name': metadata.name,
    'csi.storage.k8s.io/pod.namespace': metadata.namespace,
    'csi.storage.k8s.io/pod.uid': metadata.uid,
    'csi.storage.k8s.io/serviceAccount.name': spec.serviceAccountName ?? '',
    'csi.storage.k8s.io/ephemeral': `${mode === 'Ephemeral'}`,
  };
}

/** The group that the files of the volume are to be given to from here; undefined for none. */
export function groupFor(
  { spec: { securityContext } }: Pod,
  { readOnly, fsType, mode, accessMode }: CsiVolume,
  can: ReadonlySet<NodeCapability>,
  driver: CSIDriver | undefined,
): number | undefined {
  const policy = driver?.spec?.fsGroupPolicy ?? 'ReadWriteOnceWithFSType';
  if (readOnly || policy === 'None' || can.has('VOLUME_MOUNT_GROUP')) return undefined;
  const isOneNodes = mode === 'Ephemeral' || ['ReadWriteOnce', 'ReadWriteOncePod'].includes(accessMode);
  return policy === 'File' || (fsType !== '' && isOneNodes) ? securityContext?.fsGroup : undefined;
}

/** Throws nothing: what is no text is passed on as it can be. */
export function textsOf({ data = {} }: Secret): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}
