import type { CriClient } from '../cri/index.ts';
import type { CgroupHost, Clock, Logger, MetricRegistry, Random, SendHttp } from '../lib/index.ts';
import type { ShutdownSource } from '../node/shutdown/index.ts';
import type { PluginHost } from '../plugins/index.ts';
import type { Prober } from '../probes/index.ts';
import type {
  DeviceHost,
  EvictionStats,
  KernelLog,
  MachineFiles,
  ProcessFacts,
  SliceManager,
  WatchMemory,
} from '../resources/index.ts';
import type { DiskSpace, RotationFiles, RunPlugin, RuntimeFiles, SubPaths } from '../runtime/index.ts';
import type { HttpGet, ManifestFiles } from '../sources/index.ts';
import type { StatsMachine } from '../stats/index.ts';
import type { BlockDevices, DirectoryQuotas, Disks, NetworkMounts, VolumeFiles } from '../volumes/index.ts';
import type { ClusterLink } from './cluster-link.ts';

/** The machine as the kubelet reaches it besides the runtime; simulated as a whole in tests. */
export interface NodeMachine {
  readonly manifests: ManifestFiles;
  readonly httpGet: HttpGet;
  /** To the pods, for hooks and probes. */
  readonly dialHttp: SendHttp;
  /** Asks pods how they are; over the machine's network unless given. */
  readonly prober?: Prober | undefined;
  readonly files: RuntimeFiles;
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

/** Where the machine itself has credentials for images. */
export interface CredentialHost {
  /** Text of a file, or undefined when it is not there. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  readonly workingDir: string;
  readonly homeDir: string | undefined;
  readonly runPlugin: RunPlugin;
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
