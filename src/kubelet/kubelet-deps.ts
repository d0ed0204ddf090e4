import type { CriClient } from '../cri/index.ts';
import type { NodeEvent } from '../journal/index.ts';
import type { Node, PersistentVolumeClaim } from '../kinds/index.ts';
import type { CgroupHost, Clock, Logger, MetricRegistry, Random, SendHttp } from '../lib/index.ts';
import type { CsiNodePublisher } from '../node/index.ts';
import type { ShutdownSource } from '../node/shutdown/index.ts';
import type { BoundClaims, PodObjects, StorageObjects, TokenSource } from '../objects/index.ts';
import type { PluginHost } from '../plugins/index.ts';
import type { PodFullName, PodJournal, PodUid } from '../pods/index.ts';
import type { Prober } from '../probes/index.ts';
import type {
  DeviceHost,
  EvictionStats,
  KernelLog,
  MachineFiles,
  ProcessFacts,
  ResourceClaim,
  SliceManager,
  WatchMemory,
} from '../resources/index.ts';
import type {
  CredentialHost,
  DiskSpace,
  ForeignIds,
  KnownServices,
  PullSecrets,
  RotationFiles,
  RuntimeClasses,
  RuntimeFiles,
  ServiceAccounts,
  SubPaths,
} from '../runtime/index.ts';
import type { HttpGet, ManifestFiles } from '../sources/index.ts';
import type { StatsMachine } from '../stats/index.ts';
import type {
  BlockDevices,
  DirectoryQuotas,
  Disks,
  NetworkMounts,
  ReportVolumeEvent,
  VolumeFiles,
} from '../volumes/index.ts';
import type { BackgroundLoops } from './background.ts';

/** The machine as the kubelet reaches it besides the runtime; simulated as a whole in tests. */
export interface NodeMachine {
  readonly manifests: ManifestFiles;
  readonly httpGet: HttpGet;
  /** To the pods, for hooks and probes. */
  readonly dialHttp: SendHttp;
  /** Asks pods how they are; over the machine's network unless given. */
  readonly prober?: Prober | undefined;
  readonly files: RuntimeFiles;
  /** User and group IDs that belong to users of the machine, and must not be given to pods; none unless given. */
  readonly foreignIds?: ForeignIds | undefined;
  readonly volumeParts: SubPaths;
  /** For container logs that are full; they grow on unless given. */
  readonly logFiles?: RotationFiles | undefined;
  /** For volumes that are filled from here; pods cannot have any unless given. */
  readonly volumeFiles?: VolumeFiles | undefined;
  /** For volumes on other machines; pods cannot have any unless given. */
  readonly networkMounts?: NetworkMounts | undefined;
  /** For volumes that are disks; pods cannot have any unless given. */
  readonly disks?: Disks | undefined;
  /** For limits to what empty directories hold; there are none unless given. */
  readonly directoryQuotas?: DirectoryQuotas | undefined;
  /** For volumes that are given as devices; pods cannot have any unless given. */
  readonly blockDevices?: BlockDevices | undefined;
  /** For drivers and plugins in processes of their own; there are none unless given. */
  readonly plugins?: PluginHost | undefined;
  /** Of the file system at a place, for images nobody uses; all stay unless given. */
  readonly diskSpace?: ((path: string) => Promise<DiskSpace | undefined>) | undefined;
  /** Who ran out of memory is not told unless given. */
  readonly kernelLog?: KernelLog | undefined;
  /** Shutdowns of the machine are not announced unless given. */
  readonly shutdowns?: ShutdownSource | undefined;
  /** For moving processes to cgroups; none are moved unless given. */
  readonly processes?: ProcessFacts | undefined;
  /** For what is used of the machine; nothing is told of it unless given. */
  readonly stats?: StatsMachine | undefined;
  /** For plugins that offer devices; there are none unless given. */
  readonly devices?: DeviceHost | undefined;
  readonly cgroups: CgroupHost;
  /** For cgroups that the runtime leaves to systemd; there are none unless given. */
  readonly openSlices?: (() => Promise<SliceManager>) | undefined;
  /** What the kernel tells of the machine's parts; read as any file unless given. */
  readonly facts?: MachineFiles | undefined;
  /** What pods are evicted by; as `stats` tells it unless given, and nobody is where neither is. */
  readonly evictionStats?: EvictionStats | undefined;
  /** Nobody tells when memory falls short unless given; it is looked at. */
  readonly watchMemory?: WatchMemory | undefined;
  readFile(path: string): Promise<string>;
}

export interface KubeletDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly machine: NodeMachine;
  /** The cluster the node belongs to; it is alone unless given. */
  readonly cluster?: ClusterLink | undefined;
  /** The machine has no credentials of its own unless given. */
  readonly credentialHost?: CredentialHost | undefined;
  /** Told each time the runtime was asked how it is: what went wrong, or undefined. */
  readonly runtimeLooked?: (error: unknown) => void;
}

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
