import type { CriClient } from '../cri/index.ts';
import type { NodeEvent } from '../journal/index.ts';
import type { ContainerImage, Node, PersistentVolumeClaim } from '../kinds/index.ts';
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
import type { KubeletControl, KubeletParts } from './stages/control.ts';
import type { KubeletState } from './stages/state.ts';

/** The machine as the kubelet uses it, except for the container runtime; simulated in tests. */
export interface NodeMachine {
  readonly manifests: ManifestFiles;
  readonly httpGet: HttpGet;
  /** Sends HTTP requests to pods, for hooks and probes. */
  readonly dialHttp: SendHttp;
  /** Runs network probes; over the network of the machine by default. */
  readonly prober?: Prober | undefined;
  readonly files: RuntimeFiles;
  /**
   * User and group IDs of users of the machine, which pods must not get; by default there are none.
   */
  readonly foreignIds?: ForeignIds | undefined;
  readonly volumeParts: SubPaths;
  /** Rotates container logs; without it logs are not rotated. */
  readonly logFiles?: RotationFiles | undefined;
  /**
   * Writes volumes whose content the kubelet creates, such as ConfigMap volumes; without it pods
   * cannot have such volumes.
   */
  readonly volumeFiles?: VolumeFiles | undefined;
  /** Mounts network volumes; without it pods cannot have network volumes. */
  readonly networkMounts?: NetworkMounts | undefined;
  /** Mounts disk volumes; without it pods cannot have disk volumes. */
  readonly disks?: Disks | undefined;
  /**
   * Enforces size limits of emptyDir volumes with quotas; without it the kernel enforces no limits.
   */
  readonly directoryQuotas?: DirectoryQuotas | undefined;
  /** Provides volumes in block mode; without it pods cannot have such volumes. */
  readonly blockDevices?: BlockDevices | undefined;
  /**
   * Connects to CSI drivers and plugins, which are separate processes; without it the node has
   * none.
   */
  readonly plugins?: PluginHost | undefined;
  /**
   * Returns the space of the file system at a path, for image garbage collection; without it no
   * image is removed.
   */
  readonly diskSpace?: ((path: string) => Promise<DiskSpace | undefined>) | undefined;
  /** Reads OOM kills from the kernel log; without it OOM kills are not reported. */
  readonly kernelLog?: KernelLog | undefined;
  /** Announces shutdowns of the machine; without it the kubelet does not delay shutdowns. */
  readonly shutdowns?: ShutdownSource | undefined;
  /** Finds the processes to move to system cgroups; without it no process is moved. */
  readonly processes?: ProcessFacts | undefined;
  /** Reads usage statistics of the machine; without it no statistics are reported. */
  readonly stats?: StatsMachine | undefined;
  /** Connects to device plugins; without it the node has none. */
  readonly devices?: DeviceHost | undefined;
  readonly cgroups: CgroupHost;
  /**
   * Creates the cgroups that the runtime delegates to systemd as slices; needed only with the
   * systemd cgroup driver.
   */
  readonly openSlices?: (() => Promise<SliceManager>) | undefined;
  /** Reads kernel files with facts about the machine; by default they are read like other files. */
  readonly facts?: MachineFiles | undefined;
  /** Statistics for eviction, by default derived from `stats`; without both no pod is evicted. */
  readonly evictionStats?: EvictionStats | undefined;
  /** Subscribes to kernel notifications for low memory; without it memory is only polled. */
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
  /** The cluster of the node; undefined for a standalone node. */
  readonly cluster?: ClusterLink | undefined;
  /** Image pull credentials of the machine; by default there are none. */
  readonly credentialHost?: CredentialHost | undefined;
  /** Called after each check of the runtime, with the error or with undefined. */
  readonly runtimeChecked?: (error: unknown) => void;
}

/** The pods of the API that belong to this node. */
export interface ClusterPods {
  /** Called when a static pod or mirror pod of this name was added, changed or removed. */
  staticOrMirrorChanged(name: PodFullName): void;
  /** Resolves when the API server has the current statuses of these pods. */
  statusesWritten(uids: readonly PodUid[], signal: AbortSignal): Promise<void>;
  readonly loops: BackgroundLoops;
}

/** The Node object of this node. */
export interface ConnectedNode {
  /** The images of the node, the largest first, as last listed. */
  readonly images: readonly ContainerImage[];
  readonly loops: BackgroundLoops;
}

/** The parts of a cluster that the kubelet uses. */
export interface ClusterLink {
  /** Reads the Secrets and ConfigMaps of the registered pods. */
  readonly objects: Pick<PodObjects, 'register' | 'unregister' | 'secret' | 'configMap'>;
  /** Reads the PersistentVolumeClaims of pods and their bound volumes. */
  readonly claims: Pick<BoundClaims, 'get' | 'forgetPod' | 'size'>;
  /** Reads CSIDriver, VolumeAttachment, PersistentVolume and related objects. */
  readonly storage: Pick<
    StorageObjects,
    'driver' | 'attachment' | 'secret' | 'claim' | 'volume' | 'changeClaim'
  >;
  /** Publishes the registered CSI drivers in the CSINode object. */
  readonly csiNode: Pick<CsiNodePublisher, 'collision' | 'installed' | 'removed'>;
  readonly tokens: Pick<TokenSource, 'get' | 'forgetPod'>;
  readonly services: () => KnownServices;
  /** Returns the runtime handler of each RuntimeClass. */
  readonly runtimeClasses: RuntimeClasses;
  /** Reads the image pull secrets of pods. */
  readonly secrets: PullSecrets;
  readonly serviceAccounts: ServiceAccounts;
  /** Wraps the journal to record Kubernetes events of pods in the API. */
  readonly journal: (journal: PodJournal) => PodJournal;
  readonly nodeEvent: (event: NodeEvent) => void;
  readonly claimEvent: (claim: PersistentVolumeClaim, event: NodeEvent) => void;
  /** Records a Kubernetes event about a PersistentVolume. */
  readonly volumeEvent?: ReportVolumeEvent | undefined;
  /** The addresses in the Node object; empty before it has been read. */
  readonly nodeIps: () => readonly string[];
  /** The newest version of the Node object that this kubelet has read or written. */
  readonly node: () => Node | undefined;
  /** Reads the Node object from the API server. */
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  /** Called when the status of the node has changed: pressures, devices, volumes in use, a shutdown. */
  readonly nodeChanged: () => void;
  /** Reads a ResourceClaim from the API server; without it pods cannot have any. */
  readonly resourceClaim?:
    | ((namespace: string, name: string, signal: AbortSignal) => Promise<ResourceClaim>)
    | undefined;
  /**
   * Connects the kubelet to the pods of the API. This is the second stage of building the kubelet,
   * right after its state.
   */
  readonly connectPods: (state: KubeletState) => ClusterPods;
  /**
   * Connects the kubelet to its Node object in the API. This is the last stage of building the
   * kubelet.
   */
  readonly connectNode: (parts: KubeletParts, control: KubeletControl) => ConnectedNode;
}
