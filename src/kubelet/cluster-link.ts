import type { Node, PersistentVolumeClaim } from '../kinds/index.ts';
import type { CsiNodePublisher } from '../node/index.ts';
import type { BoundClaims, PodObjects, StorageObjects, TokenSource } from '../objects/index.ts';
import type { PodFullName, PodJournal, PodUid } from '../pods/index.ts';
import type { ResourceClaim } from '../resources/index.ts';
import type { KnownServices, PullSecrets, RuntimeClasses, ServiceAccounts } from '../runtime/index.ts';
import type { ReportVolumeEvent } from '../volumes/index.ts';
import type { BackgroundLoops } from './background.ts';
import type { NodeEvent } from './node-journal.ts';

/** What a kubelet has from the cluster its node belongs to. */
export interface ClusterLink {
  /** Secrets and config maps of the pods that were registered. */
  readonly objects: Pick<PodObjects, 'register' | 'unregister' | 'secret' | 'configMap'>;
  /** The claims of pods, and the volumes they are bound to. */
  readonly claims: Pick<BoundClaims, 'get' | 'forgetPod' | 'size'>;
  /** What CSI drivers and volumes of theirs are to be like. */
  readonly storage: Pick<
    StorageObjects,
    'driver' | 'attachment' | 'secret' | 'claim' | 'volume' | 'changeClaim'
  >;
  /** Tells the cluster which drivers are here. */
  readonly csiNode: Pick<CsiNodePublisher, 'collision' | 'installed' | 'removed'>;
  /** The volumes that must not be taken from this node have become others. */
  readonly volumesChanged: () => void;
  /** There are other devices to be had on this node than before. */
  readonly devicesChanged?: (() => void) | undefined;
  /** The node has become short of something, or has enough again. */
  readonly pressuresChanged: () => void;
  readonly tokens: Pick<TokenSource, 'get' | 'forgetPod'>;
  readonly services: () => KnownServices;
  /** Which handler of the runtime runs the pods of a class. */
  readonly runtimeClasses: RuntimeClasses;
  /** With what pods pull their images. */
  readonly secrets: PullSecrets;
  readonly serviceAccounts: ServiceAccounts;
  /** The journal through which users of the API hear of events, too. */
  readonly journal: (journal: PodJournal) => PodJournal;
  readonly nodeEvent: (event: NodeEvent) => void;
  readonly claimEvent: (claim: PersistentVolumeClaim, event: NodeEvent) => void;
  /** Tells something of a PersistentVolume. */
  readonly volumeEvent?: ReportVolumeEvent | undefined;
  /** As the Node object has them; empty while nobody knows. */
  readonly nodeIps: () => readonly string[];
  /** The Node object as newly as it is known. */
  readonly node: () => Node | undefined;
  /** The Node object as the API has it now. */
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  /** A static pod or a mirror of that name came, changed or went. */
  readonly staticChanged: (name: PodFullName) => void;
  /** Something of the node has changed that others should hear of at once. */
  readonly nodeChanged?: (() => void) | undefined;
  /** Resolves when the API has the statuses of these pods as they are here. */
  readonly statusesWritten?: ((uids: readonly PodUid[], signal: AbortSignal) => Promise<void>) | undefined;
  /** A ResourceClaim as the API has it now; pods get none unless given. */
  readonly resourceClaim?:
    | ((namespace: string, name: string, signal: AbortSignal) => Promise<ResourceClaim>)
    | undefined;
  /** What runs beside the kubelet, once it is attached. */
  readonly loops: () => BackgroundLoops;
}
