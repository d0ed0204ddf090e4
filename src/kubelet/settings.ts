import type { NodeEvent } from '../journal/index.ts';
import type { ShutdownGroup } from '../node/shutdown/index.ts';
import type {
  EvictionSettings,
  ExclusiveResourceSettings,
  KubepodsWeight,
  NodeAmount,
  ReservedCgroup,
} from '../resources/index.ts';
import type {
  ClusterDns,
  ContainerLogPolicy,
  ImageGcPolicy,
  LinuxNode,
  PluginSpec,
  SysctlRules,
  VerificationPolicy,
} from '../runtime/index.ts';
import type { SelinuxFacts } from '../volumes/index.ts';

/** What the kubelet is told once, from its configuration and from what the machine is. */
export interface KubeletSettings {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** The runtime's directories of sandboxes, by id; files in them are not counted as storage of pods unless given. */
  readonly sandboxesDir?: string | undefined;
  readonly logLinksDir: string;
  /** Empty for none. */
  readonly staticPodPath: string;
  readonly staticPodUrl: string;
  readonly staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  /** Whether pods of the API are waited for; whoever reads the API gives their lists to the kubelet's `config`. */
  readonly apiPods?: 'expected' | 'none';
  /**
   * Whether static pods may use objects of the API, and manifests of such objects may lie beside theirs for whoever puts
   * them there; not unless given.
   */
  readonly manifestReferences?: 'allowed' | 'refused';
  readonly fileCheckMs: number;
  readonly httpCheckMs: number;
  readonly syncFrequencyMs: number;
  /** How long what was counted in volumes is used; nothing is counted when it is not above 0, each minute unless given. */
  readonly volumeStatsMs?: number | undefined;
  /**
   * The machine's own cgroups, below each tree, as far as they are known; their use is told with that of pods. Kubeling
   * itself goes to its own, and what lies in the root to `misc`.
   */
  readonly systemCgroups?:
    | {
        readonly kubelet?: string | undefined;
        readonly runtime?: string | undefined;
        readonly misc?: string | undefined;
      }
    | undefined;
  /** The TCP ports on which the node and its runtime listen: pods that request one as host port are rejected. */
  readonly nodePorts?: (() => ReadonlySet<number>) | undefined;
  /** The socket the runtime is reached by; not known unless given. */
  readonly runtimeSocket?: string | undefined;
  readonly cgroupRoot: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  /** Whether pods get cgroups of their own. */
  readonly cgroupsPerQos: boolean;
  /** What the node has besides those of its name and system; none unless given. */
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  readonly capacity: NodeAmount;
  /** Of the capacity, what pods may not have. */
  readonly reserved: NodeAmount;
  /** What of it pods do not get by any means, whether they are held to that or not; what is reserved unless given. */
  readonly withheld?: NodeAmount | undefined;
  /** By what pods share CPU with the rest of the machine; by their CPUs unless given. */
  readonly kubepodsWeight?: KubepodsWeight | undefined;
  /** Cgroups of others that are held to what is reserved for them; none unless given. */
  readonly reservedCgroups?: readonly ReservedCgroup[] | undefined;
  readonly node: LinuxNode;
  /** Whether pods get processors and memory of certain places of the machine; from anywhere unless given. */
  readonly exclusiveResources?: ExclusiveResourceSettings | undefined;
  /** The machine has no SELinux unless given. */
  readonly selinux?: SelinuxFacts | undefined;
  /** Who attaches volumes to this node; the cluster unless given. */
  readonly attaching?: 'cluster' | 'node' | undefined;
  /** Of the machine's CPUs, where there are some; containers must not see how hot the machine is. */
  readonly thermalThrottlePaths?: readonly string[] | undefined;
  /** What the machine lacks that pods may count on: told when the node starts. */
  readonly startEvents?: readonly NodeEvent[] | undefined;
  /** What pods may have of the kernel; left out, nobody is refused for it. */
  readonly kernel?: { readonly sysctls: SysctlRules; readonly appArmor: 'enabled' | 'disabled' } | undefined;
  /** Users and groups for each pod that does not share those of the machine; as few as there can be unless given. */
  readonly idsPerPod?: number | undefined;
  /** Of which they are taken; all but the machine's own unless given. */
  readonly userIds?: { readonly first: number; readonly length: number } | undefined;
  /** Whether empty directories on the disk are held to their `sizeLimit` by the kernel; not unless given. */
  readonly emptyDirQuota?: 'enforced' | 'off' | undefined;
  /** Whether volumes of dead servers are taken out of sight where nothing unmounts them; they stay unless given. */
  readonly deadVolumes?: 'detach' | 'keep' | undefined;
  /** How long pods have when the machine shuts down, by priority; they go down with it unless given. */
  readonly shutdownGroups?: readonly ShutdownGroup[] | undefined;
  /** What Guaranteed pods are given in whole pieces of their own, which stay as they are; nothing unless given. */
  readonly exclusive?: { readonly cpu: boolean; readonly memory: boolean } | undefined;
  readonly podPidsLimit: number;
  readonly clusterDns: ClusterDns;
  readonly clusterDomain: string;
  readonly resolvConf: string;
  readonly seccompFallback: 'RuntimeDefault' | 'Unconfined';
  readonly maxPods: number;
  readonly maxRestartWaitMs: number;
  /** The most a postStart or preStop hook may take; as long as it wants unless given. */
  readonly hookLimitMs?: number | undefined;
  /** With what images are pulled, and who may use them; left out, nobody has credentials and all may use all. */
  readonly images?:
    | {
        readonly verification: VerificationPolicy | undefined;
        readonly plugins:
          | { readonly binDir: string; readonly specs: readonly PluginSpec[]; readonly fingerprint: string }
          | undefined;
      }
    | undefined;
  readonly pulls: { readonly maxParallel: number | undefined; readonly qps: number; readonly burst: number };
  /** When logs of containers are rotated, and how much of them is kept; they grow on unless given. */
  readonly containerLogs?: ContainerLogPolicy | undefined;
  /** When images nobody uses are removed; never unless given. */
  readonly imageGc?: ImageGcPolicy | undefined;
  /** When pods are evicted; never unless given. */
  readonly eviction?: EvictionSettings | undefined;
  /** What becomes of new pods while the node is short of something: they are refused unless given. */
  readonly underPressure?: 'refuse' | 'wait' | undefined;
  readonly gc: {
    readonly minAgeMs: number;
    readonly maxPerContainer: number;
    readonly maxContainers: number;
  };
  readonly isGateEnabled: (gate: string) => boolean;
}
