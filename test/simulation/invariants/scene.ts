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

/** The state of the simulation that a rule can read. */
export interface Scene {
  readonly desk: Desk;
  readonly runtime: SimulatedRuntime;
  readonly nowMs: () => number;
  readonly kubelet: () => Kubelet | undefined;
  /** Whether the runtime failed, or fails, such that a pod may have to be recreated. */
  readonly isDamaged: (podUid: string) => boolean;
  /** Whether calls may have had effects that their callers do not know of. */
  readonly isUncertain: () => boolean;
  /** The maximum crash back-off; the one from the settings unless given. */
  readonly maxRestartWaitMs?: number;
  /** The cluster the node belongs to; the node is standalone unless given. */
  readonly cluster?: ClusterParts | undefined;
  /** The volumes of a simulation that uses all volume types. */
  readonly volumes?: VolumeWorld | undefined;
  /** The logs of a simulation that rotates them. */
  readonly logs?: Pick<MemoryFiles, 'paths' | 'read'> | undefined;
  /** Whether pods request devices. */
  readonly devices?: DeviceWorld | undefined;
  readonly report: (rule: string, what: string) => void;
}

/** The same state, with the history so far. */
export interface RuleScene extends Scene {
  readonly ledger: Ledger;
}

/** Additional state of a node in a cluster. */
export interface ClusterParts {
  readonly world: ClusterWorld;
  readonly machine: NodeMachine;
  readonly cgroups: SimulatedCgroupHost;
  /** Whether nothing about the pod may change now. */
  readonly isQuiet: (podUid: string) => boolean;
}

export interface ClusterScene extends RuleScene {
  readonly cluster: ClusterParts;
}

/**
 * An invariant that must hold at every moment. It is called synchronously, before the simulation
 * continues.
 */
export interface Rule {
  entry?(entry: TraceEntry): void;
  calling?(method: string, request: unknown): void;
  /** A command executed in a container has exited; undefined if the call failed. */
  answered?(request: ExecSyncRequest, response: ExecSyncResponse | undefined): void;
  /** A network probe is sent and will get this response. */
  probed?(question: ProbeRequest, response: 'success' | 'failure'): void;
  kubeletStarted?(life: KubeletLife): void;
  /** Durations that only the wall clock recorded are no longer known. */
  clockJumped?(): void;
  /** An API object has changed. */
  apiChanged?(change: StoreChange): void;
  /** A volume, or a directory of volumes, is about to change. */
  volumeChanging?(method: string, path: string): void;
  /** The spec of a pod was edited: the edited containers start from scratch. */
  edited?(podUid: string): void;
  /** The runtime loses containers, or their exit codes. */
  runtimeLost?(): void;
  /** The node has reached its expected state and no work is pending. */
  settled?(): void;
}
