import type { NodeAddress } from '../kinds/index.ts';

/** What is asked of the world about this node. Each is a small door of its own, so that it can be scripted. */

/** What happens to the node, for users of the API. Never blocks, never throws. */
export interface NodeRecorder {
  event(event: NodeEvent): void;
}

export interface NodeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface LocalAddress {
  readonly interface: string;
  readonly address: string;
}

/** The machine, as far as others read about it in the Node object. */
export interface NodeMachine {
  /** The text of a file; undefined when there is none, or it cannot be read. */
  read(path: string): Promise<string | undefined>;
  /** Addresses of interfaces that are up. */
  addresses(): readonly LocalAddress[];
  /** All addresses DNS and the hosts file know for the name; rejects when they know none. */
  lookup(name: string, signal: AbortSignal): Promise<readonly string[]>;
  kernelRelease(): string;
}

/** Bytes unless named otherwise. */
export interface MachineCapacity {
  readonly milliCpu: number;
  readonly memory: number;
  /** Of the file system pods write to; undefined while nobody knows. */
  readonly ephemeralStorage: number | undefined;
  /** By size of page as the files of cgroups spell it, such as 2MB. */
  readonly hugePages: ReadonlyMap<string, number>;
  /** 0 for none. */
  readonly swap: number;
}

/** What device plugins offer, by the name of the resource. */
export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /** Offered once and gone now: told as none, so that nobody takes them for a resource of the cluster. */
  readonly removed: readonly string[];
}

export interface NodeResources {
  /** Undefined when the machine does not tell. */
  capacity(): MachineCapacity | undefined;
  devices?(): DeviceAmounts;
  /** Whether what an existing Node says of devices is from an earlier life of the machine. */
  areDevicesForgotten?(): boolean;
}

export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
}

export interface RuntimeFacts {
  /** Such as containerd. */
  readonly name: string;
  readonly version: string;
  readonly handlers: readonly RuntimeHandler[];
  /** Undefined where the runtime does not tell of features at all. */
  readonly supplementalGroupsPolicy: boolean | undefined;
}

export interface ImageFacts {
  readonly repoDigests: readonly string[];
  readonly repoTags: readonly string[];
  readonly sizeBytes: number;
}

export interface NodeRuntime {
  /** Asks the runtime now how it is; what comes of it is told by `NodeHealth`. May reject: that is told there as well. */
  check(signal: AbortSignal): Promise<void>;
  /** As last told; undefined before the first answer. */
  facts(): RuntimeFacts | undefined;
  images(signal: AbortSignal): Promise<readonly ImageFacts[]>;
  /** Where pods get their addresses from, as the cluster decided. Called again after a failure. */
  usePodCidrs(cidrs: readonly string[], signal: AbortSignal): Promise<void>;
}

export type Pressure = 'memory' | 'disk' | 'pid';

export interface NodeHealth {
  /** Why no pod can be worked on: runtime, PLEG, network, storage, shutdown. Ready when empty. */
  problems(): readonly string[];
  /** What is short. */
  pressures(): ReadonlySet<Pressure>;
  /** Told with the Ready condition without changing it. */
  warnings?(): readonly string[];
}

export interface NodeVolumes {
  /** Undefined until it is known what is mounted; then nothing that is in use may be missing. */
  inUse(): readonly string[] | undefined;
  /** The API server knows now that these are in use. */
  reported(volumes: readonly string[]): void;
}

/** Who else knows the node's addresses, such as a cloud. */
export interface AddressProvider {
  addresses(nodeName: string, signal: AbortSignal): Promise<readonly NodeAddress[]>;
}

/** The connections heartbeats go over. */
export interface HeartbeatConnections {
  /** The next call goes over a fresh connection. Never blocks. */
  redial(): void;
}
