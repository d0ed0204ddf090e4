import type { CSIDriver, Node, Secret, VolumeAttachment } from '../../kinds/index.ts';
import { type Clock, KubelingError } from '../../lib/index.ts';
import type { TokenSource } from '../../objects/index.ts';
import type { ClaimApi } from '../claims/expansions.ts';
import { stageError } from '../manager/mount-attempts.ts';
import { attachedName, attachmentName } from './csi-paths.ts';
import type { CsiVolume } from './csi-request.ts';

export interface CsiAttachDeps {
  readonly nodeName: string;
  readonly api: Pick<CsiApi, 'attachment' | 'isListed'>;
  readonly clock: Clock;
}

/** Interval at which the VolumeAttachment is polled. */
const pollMs = 1_000;
/** gRPC code RESOURCE_EXHAUSTED: the node's attach limit is reached. */
const resourceExhausted = 8;
const stage = 'MountVolume.WaitForAttach failed';

/**
 * Returns the publish context of the VolumeAttachment for this node. Rejects with a retry time
 * while the volume is not attached; the controller attaches it once the node status lists it in
 * volumesInUse.
 */
export async function publishContextOf(
  { nodeName, api, clock }: CsiAttachDeps,
  { name, driver, handle }: CsiVolume,
  spec: CSIDriver['spec'] | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const waits = (why: string) => stageError(stage, name, why, clock.monotonicMs() + pollMs);
  if (!(await api.isListed(attachedName(driver, handle), signal)))
    throw waits('Volume not attached according to node status');
  const attachment = attachmentName(handle, driver, nodeName);
  const found = await api.attachment(attachment, signal);
  if (found === undefined) throw waits(`volumeattachments.storage.k8s.io "${attachment}" not found`);
  const { attached, attachError, attachmentMetadata = {} } = found.status ?? { attached: false };
  if (attached) return attachmentMetadata;
  if (attachError?.errorCode === resourceExhausted && spec?.nodeAllocatableUpdatePeriodSeconds !== undefined)
    throw new KubelingError(
      'VOLUME_ATTACH_LIMIT',
      waits(attachError.message ?? 'the attach limit of the node is reached').message,
      {
        details: { stage, retryAtMs: clock.monotonicMs() + pollMs },
      },
    );
  if (attachError !== undefined) throw waits(attachError.message ?? 'it could not be attached');
  if (found.metadata?.deletionTimestamp !== undefined) throw waits('volume attachment is being deleted');
  throw waits(`volume ${handle} is not attached for volume attachment ${attachment}`);
}

/** Whether the error reports that the attach limit of the node is reached. */
export function isPastLimit(error: unknown): error is KubelingError {
  return error instanceof KubelingError && error.code === 'VOLUME_ATTACH_LIMIT';
}

/** Whether the error contains the time of the next attempt. */
export function isWaiting(error: unknown): boolean {
  return error instanceof KubelingError && typeof error.details['retryAtMs'] === 'number';
}

/** API requests for CSI drivers and volumes; they return undefined for missing objects. */
export interface CsiApi extends ClaimApi {
  driver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Whether the node status lists the volume both in volumesAttached and in volumesInUse. */
  isListed(volume: string, signal: AbortSignal): Promise<boolean>;
  /** Names of the volumes that the cached node status lists as attached or in use. */
  listed(): readonly string[];
  readonly tokens: Pick<TokenSource, 'get'>;
}

/** The part of the connection to the API server that CSI volumes need. */
export interface CsiClusterLink {
  readonly storage: Pick<CsiApi, 'driver' | 'attachment' | 'secret' | 'claim' | 'volume' | 'changeClaim'>;
  readonly tokens: CsiApi['tokens'];
  readonly claimEvent: CsiApi['claimEvent'];
  readonly node: () => Node | undefined;
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
}

/** Builds the CsiApi from the connection to the API server. */
export function csiApi(cluster: CsiClusterLink): CsiApi {
  const { storage, tokens } = cluster;
  const lists = (node: Node | undefined, volume: string) =>
    node?.status?.volumesAttached?.some(({ name }) => name === volume) === true;
  return {
    driver: (name, signal) => storage.driver(name, signal),
    attachment: (name, signal) => storage.attachment(name, signal),
    secret: (namespace, name, signal) => storage.secret(namespace, name, signal),
    claim: (namespace, name, signal) => storage.claim(namespace, name, signal),
    volume: (name, signal) => storage.volume(name, signal),
    changeClaim: (claim, change, signal) => storage.changeClaim(claim, change, signal),
    claimEvent: cluster.claimEvent,
    tokens,
    listed: () => {
      const { volumesAttached = [], volumesInUse = [] } = cluster.node()?.status ?? {};
      return [...volumesAttached.map(({ name }) => name), ...volumesInUse];
    },
    // The cached Node saves a request while it does not list the volume as attached, but it may be
    // stale, so the Node is read again. The volume must also be in volumesInUse, because the
    // controller may otherwise detach it.
    isListed: async (volume, signal) => {
      if (!lists(cluster.node(), volume)) return false;
      const node = await cluster.fetchNode(signal);
      return lists(node, volume) && node.status?.volumesInUse?.includes(volume) === true;
    },
  };
}
