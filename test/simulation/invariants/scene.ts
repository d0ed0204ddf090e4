import type { ExecSyncRequest, ExecSyncResponse } from '../../../src/cri/index.ts';
import type { Kubelet, NodeMachine } from '../../../src/kubelet/index.ts';
import type { StoreChange } from '../../../src/local-api/storage/versioned-store.ts';
import type { ProbeRequest } from '../../../src/probes/index.ts';
import type { SimulatedCgroupHost } from '../../fakes/simulated-cgroup-host.ts';
import type { MemoryFiles, SimulatedRuntime, TraceEntry } from '../../simulator/index.ts';
import type { ClusterWorld } from '../cluster/cluster-world.ts';
import type { Desk } from '../desk.ts';
import type { DeviceWorld } from '../devices/device-world.ts';
import type { KubeletLife } from '../kubelet-life.ts';
import type { VolumeWorld } from '../volumes/volume-world.ts';
import type { Ledger } from './ledger.ts';

/** The state of the simulation that an invariant can read. */
export interface Scene {
  readonly desk: Desk;
  readonly runtime: SimulatedRuntime;
  readonly nowMs: () => number;
  readonly kubelet: () => Kubelet | undefined;
  /** Whether the runtime failed in a way that may require the pod to be recreated. */
  readonly isDamaged: (podUid: string) => boolean;
  /** Whether runtime calls may have taken effect although their caller received an error. */
  readonly isUncertain: () => boolean;
  /** The maximum crash back-off; by default the one of the settings. */
  readonly maxRestartWaitMs?: number;
  /** The cluster the node belongs to; undefined for a standalone node. */
  readonly cluster?: ClusterParts | undefined;
  /** The volumes of a simulation with all volume types. */
  readonly volumes?: VolumeWorld | undefined;
  /** The log files of a simulation that rotates them. */
  readonly logs?: Pick<MemoryFiles, 'paths' | 'read'> | undefined;
  /** The device plugin of a simulation in which pods request devices. */
  readonly devices?: DeviceWorld | undefined;
  readonly report: (rule: string, what: string) => void;
}

/** The state of the simulation, with the history of the containers. */
export interface RuleScene extends Scene {
  readonly ledger: Ledger;
}

/** Additional state of a node in a cluster. */
export interface ClusterParts {
  readonly world: ClusterWorld;
  readonly machine: NodeMachine;
  readonly cgroups: SimulatedCgroupHost;
  /** Whether the kubelet must not write the pod's status at the moment. */
  readonly isQuiet: (podUid: string) => boolean;
}

export interface ClusterScene extends RuleScene {
  readonly cluster: ClusterParts;
}

/**
 * An invariant of the simulation. Its methods are called synchronously, before the simulation
 * continues.
 */
export interface Rule {
  entry?(entry: TraceEntry): void;
  calling?(method: string, request: unknown): void;
  /** A command executed in a container has exited; the response is undefined if the call failed. */
  answered?(request: ExecSyncRequest, response: ExecSyncResponse | undefined): void;
  /** A network probe is sent and will get this response. */
  probed?(question: ProbeRequest, response: 'success' | 'failure'): void;
  kubeletStarted?(life: KubeletLife): void;
  /** The wall clock was set, so durations recorded only by it are unknown. */
  clockJumped?(): void;
  /** An API object has changed. */
  apiChanged?(change: StoreChange): void;
  /** A volume, or a directory of volumes, is about to change. */
  volumeChanging?(method: string, path: string): void;
  /** The spec of a pod was edited: the edited containers restart without history. */
  edited?(podUid: string): void;
  /** The runtime has lost containers or their exit codes. */
  runtimeLost?(): void;
  /** The node has reached its expected state and no work is pending. */
  settled?(): void;
}
