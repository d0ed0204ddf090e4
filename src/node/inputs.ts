import type { NodeAddress } from '../kinds/index.ts';

/** Inputs of the package, as small interfaces so that they can be faked. */

/** Events of the node. Never blocks, never throws. */
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

/** Facts of the machine that the Node object publishes. */
export interface NodeMachineInfo {
  /** The text of a file; undefined when it is missing or unreadable. */
  read(path: string): Promise<string | undefined>;
  /** Addresses of interfaces that are up. */
  addresses(): readonly LocalAddress[];
  /** All addresses of the name in DNS and the hosts file; rejects when there are none. */
  lookup(name: string, signal: AbortSignal): Promise<readonly string[]>;
  kernelRelease(): string;
}

/** In bytes unless named otherwise. */
export interface MachineCapacity {
  readonly milliCpu: number;
  readonly memory: number;
  /** Size of the file system that pods write to; undefined while unknown. */
  readonly ephemeralStorage: number | undefined;
  /** By page size as in cgroup file names, such as 2MB. */
  readonly hugePages: ReadonlyMap<string, number>;
  /** 0 for none. */
  readonly swap: number;
}

/** Device plugin resources, by name. */
export interface DeviceCapacity {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  /**
   * Resources that were removed: published as zero, so that they do not look like other extended
   * resources.
   */
  readonly removed: readonly string[];
}

export interface NodeResources {
  /** Undefined when the machine is unreadable. */
  capacity(): MachineCapacity | undefined;
  devices?(): DeviceCapacity;
  /** Whether the devices of an existing Node are from a previous boot. */
  areDevicesUnregistered?(): boolean;
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
  /** Undefined where the runtime does not report features. */
  readonly supplementalGroupsPolicy: boolean | undefined;
}

export interface NodeImageFacts {
  readonly repoDigests: readonly string[];
  readonly repoTags: readonly string[];
  readonly sizeBytes: number;
}

export interface NodeRuntime {
  /** Checks the runtime now; `NodeHealth` reports the result. A rejection is reported there too. */
  check(signal: AbortSignal): Promise<void>;
  /** Facts of the last check; undefined before the first one. */
  facts(): RuntimeFacts | undefined;
  images(signal: AbortSignal): Promise<readonly NodeImageFacts[]>;
  /** Sends the pod CIDRs to the runtime. Retried after a failure. */
  usePodCidrs(cidrs: readonly string[], signal: AbortSignal): Promise<void>;
}

export type NodePressure = 'memory' | 'disk' | 'pid';

export interface NodeHealth {
  /** Why pods cannot run: runtime, PLEG, network, storage, shutdown. Ready when empty. */
  problems(): readonly string[];
  /** Current pressures. */
  pressures(): ReadonlySet<NodePressure>;
  /** Appended to the Ready condition without changing it. */
  warnings?(): readonly string[];
}

export interface NodeVolumes {
  /** Undefined until the mounted volumes are known, because a used volume must not be missing. */
  inUse(): readonly string[] | undefined;
  /** The API server has these volumes as in use now. */
  reported(volumes: readonly string[]): void;
}

/** An external source of the node's addresses, such as a cloud provider. */
export interface AddressProvider {
  addresses(nodeName: string, signal: AbortSignal): Promise<readonly NodeAddress[]>;
}

/** The connections of heartbeats. */
export interface HeartbeatConnections {
  /** The next call uses a new connection. Never blocks. */
  redial(): void;
}
