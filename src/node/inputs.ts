import type { NodeAddress } from '../kinds/index.ts';

/** The inputs of the node package, as small interfaces so that tests can fake them. */

/** Sends an event about the node. Never blocks, never throws. */
export interface NodeRecorder {
  event(event: NodeEventInput): void;
}

export interface NodeEventInput {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface LocalAddress {
  readonly interface: string;
  readonly address: string;
}

/** The facts of the machine that the Node object publishes. */
export interface NodeMachineInfo {
  /** Reads a text file; undefined when it is missing or unreadable. */
  read(path: string): Promise<string | undefined>;
  /** The addresses of network interfaces that are up. */
  addresses(): readonly LocalAddress[];
  /**
   * Resolves a host name to all its addresses in DNS and the hosts file; rejects when there are
   * none.
   */
  lookup(name: string, signal: AbortSignal): Promise<readonly string[]>;
  kernelRelease(): string;
}

/** The capacity of the machine; amounts are in bytes unless their name has another unit. */
export interface MachineCapacity {
  readonly milliCpu: number;
  readonly memory: number;
  /** The size of the file system that pods write to; undefined while it is unknown. */
  readonly ephemeralStorage: number | undefined;
  /** The amounts of huge pages by page size as in cgroup file names, such as 2MB. */
  readonly hugePages: ReadonlyMap<string, number>;
  /** The swap size; 0 when there is no swap. */
  readonly swap: number;
}

/** The resources of device plugins by name. */
export interface DeviceCapacity {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /**
   * Device plugin resources that were removed: published as zero, so that they are not taken for
   * extended resources of other owners.
   */
  readonly removed: readonly string[];
}

export interface NodeResources {
  /** The capacity of the machine; undefined when it is unreadable. */
  capacity(): MachineCapacity | undefined;
  devices?(): DeviceCapacity;
  /** Whether the devices in an existing Node object are from a previous boot. */
  areDevicesUnregistered?(): boolean;
}

export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
}

export interface RuntimeFacts {
  /** The name of the container runtime, such as containerd. */
  readonly name: string;
  readonly version: string;
  readonly handlers: readonly RuntimeHandler[];
  /**
   * Whether the runtime supports the supplementalGroupsPolicy field; undefined when it does not
   * report features.
   */
  readonly supplementalGroupsPolicy: boolean | undefined;
}

export interface NodeImageFacts {
  readonly repoDigests: readonly string[];
  readonly repoTags: readonly string[];
  readonly sizeBytes: number;
}

export interface NodeRuntime {
  /** Checks the runtime now; `NodeHealth` reports the result, including a failure of the check. */
  check(signal: AbortSignal): Promise<void>;
  /** The facts of the last runtime check; undefined before the first one. */
  facts(): RuntimeFacts | undefined;
  images(signal: AbortSignal): Promise<readonly NodeImageFacts[]>;
  /** Sends the pod CIDRs to the runtime. The caller retries after a failure. */
  usePodCidrs(cidrs: readonly string[], signal: AbortSignal): Promise<void>;
}

export type NodePressure = 'memory' | 'disk' | 'pid';

export interface NodeHealth {
  /**
   * Why pods cannot run: problems of the runtime, PLEG, network or storage, or a shutdown. The node
   * is ready when there are none.
   */
  problems(): readonly string[];
  /** The current node pressures: memory, disk, PIDs. */
  pressures(): ReadonlySet<NodePressure>;
  /** Warnings for the message of the Ready condition, which do not change its status. */
  warnings?(): readonly string[];
}

export interface NodeVolumes {
  /**
   * The volumes in use; undefined until the mounted volumes are known, because a used volume must
   * not be missing in the status.
   */
  inUse(): readonly string[] | undefined;
  /** Called with the volumesInUse of the node status that the API server has stored. */
  reported(volumes: readonly string[]): void;
}

/** An external source of the node's addresses, such as a cloud provider. */
export interface AddressProvider {
  addresses(nodeName: string, signal: AbortSignal): Promise<readonly NodeAddress[]>;
}

/** The connections to the API server over which heartbeats are sent. */
export interface HeartbeatConnections {
  /** Closes the heartbeat connections, so that the next heartbeat opens a new one. Never blocks. */
  redial(): void;
}
