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

/** What a rule sees of the world. */
export interface Scene {
  readonly desk: Desk;
  readonly runtime: SimulatedRuntime;
  readonly nowMs: () => number;
  readonly kubelet: () => Kubelet | undefined;
  /** Whether the runtime has been, or is, in such trouble that a pod may have to be made anew. */
  readonly isDamaged: (podUid: string) => boolean;
  /** Whether calls may have had effects that their callers do not know of. */
  readonly isUncertain: () => boolean;
  /** The longest wait of a container that crashes; that of the settings unless given. */
  readonly maxRestartWaitMs?: number;
  /** The cluster the node belongs to; it is alone unless given. */
  readonly cluster?: ClusterParts | undefined;
  /** The volumes of a world that has all kinds of them. */
  readonly volumes?: VolumeWorld | undefined;
  /** Of a world in which they are rotated. */
  readonly logs?: Pick<MemoryFiles, 'paths' | 'read'> | undefined;
  /** Whether pods ask for devices. */
  readonly devices?: DeviceWorld | undefined;
  readonly report: (rule: string, what: string) => void;
}

/** The same, with all that has happened so far. */
export interface RuleScene extends Scene {
  readonly ledger: Ledger;
}

/** What there is besides on a node of a cluster. */
export interface ClusterParts {
  readonly world: ClusterWorld;
  readonly machine: NodeMachine;
  readonly cgroups: SimulatedCgroupHost;
  /** Whether nothing may change about the pod now. */
  readonly isQuiet: (podUid: string) => boolean;
}

export interface ClusterScene extends RuleScene {
  readonly cluster: ClusterParts;
}

/** Something that must hold at every moment. Called at once, before anything else happens. */
export interface Rule {
  entry?(entry: TraceEntry): void;
  calling?(method: string, request: unknown): void;
  /** A command run in a container has ended; undefined if the call failed. */
  answered?(request: ExecSyncRequest, answer: ExecSyncResponse | undefined): void;
  /** A probe over the network is asked, and will be answered like this. */
  probed?(question: ProbeRequest, answer: 'success' | 'failure'): void;
  kubeletStarted?(life: KubeletLife): void;
  /** Nobody can tell any more how long ago something was that only the wall clock knew. */
  clockJumped?(): void;
  /** An object of the API has changed. */
  apiChanged?(change: StoreChange): void;
  /** A volume, or a directory of volumes, is about to change. */
  volumeChanging?(method: string, path: string): void;
  /** A pod was asked to be otherwise: what is edited begins anew. */
  edited?(podUid: string): void;
  /** The runtime forgets what ran, or does not know how it ended. */
  runtimeLost?(): void;
  /** All is as it should be, and nothing is going on. */
  settled?(): void;
}
