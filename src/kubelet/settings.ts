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

/** The settings of a kubelet, from its configuration file, flags and machine. */
export interface KubeletSettings {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  readonly rootDir: string;
  readonly podLogsDir: string;
  /**
   * The directory with the runtime's sandbox directories, named by sandbox ID; without it their
   * files are not counted as pod storage.
   */
  readonly sandboxesDir?: string | undefined;
  readonly logLinksDir: string;
  /** The directory or file of static pod manifests; empty if there is none. */
  readonly staticPodPath: string;
  readonly staticPodUrl: string;
  readonly staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  /** Whether the kubelet waits for pods of the API, which arrive through its `config`. */
  readonly apiPods?: 'expected' | 'none';
  /**
   * Whether static pods may reference API objects whose manifests are in the same directory;
   * refused by default.
   */
  readonly manifestReferences?: 'allowed' | 'refused';
  readonly fileCheckMs: number;
  readonly httpCheckMs: number;
  readonly syncFrequencyMs: number;
  /**
   * How long the measured usage of volumes is cached; one minute by default, and usage is not
   * measured when it is 0 or less.
   */
  readonly volumeStatsMs?: number | undefined;
  /**
   * The cgroups of system processes, relative to each hierarchy; their usage is reported with that
   * of pods. The kubelet moves itself to `kubelet`, and processes of the root cgroup to `misc`.
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
  /** The socket path of the container runtime; unknown by default. */
  readonly runtimeSocket?: string | undefined;
  readonly cgroupRoot: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  /** Whether pods get their own cgroups, below one cgroup per QoS class. */
  readonly cgroupsPerQos: boolean;
  /** Additional labels of the Node object, besides its name and system labels; none by default. */
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  readonly capacity: NodeAmount;
  /** The part of the capacity that is reserved for the system and for Kubernetes. */
  readonly reserved: NodeAmount;
  /**
   * The part of the capacity that is not allocatable to pods, whether cgroups enforce it or not;
   * `reserved` by default.
   */
  readonly withheld?: NodeAmount | undefined;
  /** How the CPU weight of the kubepods cgroup is computed; by default from its CPUs. */
  readonly kubepodsWeight?: KubepodsWeight | undefined;
  /** The cgroups of system processes on which a reservation is enforced; none by default. */
  readonly reservedCgroups?: readonly ReservedCgroup[] | undefined;
  readonly node: LinuxNode;
  /** The policies by which containers get exclusive CPUs and memory; without it they get none. */
  readonly exclusiveResources?: ExclusiveResourceSettings | undefined;
  /** The SELinux state of the machine; without it SELinux is off. */
  readonly selinux?: SelinuxFacts | undefined;
  /**
   * Which component attaches volumes to this node: by default the attach/detach controller of the
   * cluster.
   */
  readonly attaching?: 'cluster' | 'node' | undefined;
  /**
   * Thermal throttling files of the CPUs, which are masked in containers because they reveal the
   * temperature of the machine.
   */
  readonly thermalThrottlePaths?: readonly string[] | undefined;
  /** Node events about features that the machine lacks, recorded when the node starts. */
  readonly startEvents?: readonly NodeEvent[] | undefined;
  /**
   * The sysctls and AppArmor profiles that pods may use; without it no pod is rejected for them.
   */
  readonly kernel?: { readonly sysctls: SysctlRules; readonly appArmor: 'enabled' | 'disabled' } | undefined;
  /** The number of user and group IDs for each pod with a user namespace; 65536 by default. */
  readonly idsPerPod?: number | undefined;
  /**
   * The range of user and group IDs for user namespaces; by default all IDs except those that the
   * machine itself uses.
   */
  readonly userIds?: { readonly first: number; readonly length: number } | undefined;
  /** Whether the kernel enforces the `sizeLimit` of emptyDir volumes on disk; off by default. */
  readonly emptyDirQuota?: 'enforced' | 'off' | undefined;
  /**
   * Whether network volumes of unreachable servers that cannot be unmounted are detached (lazy
   * unmount); by default they stay mounted.
   */
  readonly deadVolumes?: 'detach' | 'keep' | undefined;
  /** Shutdown grace periods of pods by priority; without it a shutdown is not delayed. */
  readonly shutdownGroups?: readonly ShutdownGroup[] | undefined;
  /**
   * Whether Guaranteed pods get exclusive CPUs and exclusive memory, which prevents a resize of
   * these pods; by default they get neither.
   */
  readonly exclusive?: { readonly cpu: boolean; readonly memory: boolean } | undefined;
  readonly podPidsLimit: number;
  readonly clusterDns: ClusterDns;
  readonly clusterDomain: string;
  readonly resolvConf: string;
  readonly seccompFallback: 'RuntimeDefault' | 'Unconfined';
  readonly maxPods: number;
  readonly maxRestartWaitMs: number;
  /** The maximum duration of a postStart or preStop hook; unlimited by default. */
  readonly hookLimitMs?: number | undefined;
  /**
   * Credential provider plugins and the verification of image pulls; without it no plugin is
   * called, and pods may use all images.
   */
  readonly images?:
    | {
        readonly verification: VerificationPolicy | undefined;
        readonly plugins:
          | { readonly binDir: string; readonly specs: readonly PluginSpec[]; readonly fingerprint: string }
          | undefined;
      }
    | undefined;
  readonly pulls: { readonly maxParallel: number | undefined; readonly qps: number; readonly burst: number };
  /** The size limits and rotation of container logs; without it logs are not rotated. */
  readonly containerLogs?: ContainerLogPolicy | undefined;
  /**
   * The thresholds for garbage collection of unused images; without it images are not collected.
   */
  readonly imageGc?: ImageGcPolicy | undefined;
  /** The eviction thresholds; without it no pod is evicted. */
  readonly eviction?: EvictionSettings | undefined;
  /**
   * Whether new pods are rejected or wait while the node is under pressure; rejected by default.
   */
  readonly underPressure?: 'refuse' | 'wait' | undefined;
  readonly gc: {
    readonly minAgeMs: number;
    readonly maxPerContainer: number;
    readonly maxContainers: number;
  };
  readonly isGateEnabled: (gate: string) => boolean;
}
