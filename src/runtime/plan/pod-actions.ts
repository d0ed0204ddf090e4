import type { Container } from '../../kinds/index.ts';
import type { PodAllocation } from '../../pods/index.ts';
import type { ResizePlan } from '../resize/resize-plan.ts';

/** Why a container is stopped; part of what users see. */
export type KillReason =
  | 'Unknown'
  | 'LivenessProbe'
  | 'StartupProbe'
  | 'SpecChanged'
  | 'Resize'
  | 'FailedPostStartHook'
  | 'RestartAllContainers'
  | 'PodTermination';

export interface ContainerToKill {
  readonly id: string;
  readonly name: string;
  /** As the runtime remembers it when the pod's spec no longer has it. */
  readonly container: Container;
  readonly message: string;
  readonly reason: KillReason;
}

/** One instance of a container that makes way for a restart of the whole pod; its logs stay. */
export interface ContainerToReset {
  readonly id: string;
  readonly container: Container;
  /** An instance that may still run is stopped before it is removed. */
  readonly stopFirst: boolean;
}

/**
 * The plan of one sync: what to do so that the pod's containers match its spec. Made by computePodActions, a pure
 * function; carried out by the sync. Containers to start are named by their place in the spec.
 */
export interface PodActions {
  /** Stop everything that runs, sandbox included. */
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  /** The sandbox to use, or the one that is replaced; empty for none. */
  readonly sandboxId: string;
  /** Of the sandbox to create. */
  readonly attempt: number;
  readonly initContainersToStart: readonly number[];
  readonly containersToStart: readonly number[];
  readonly ephemeralContainersToStart: readonly number[];
  /** By id. */
  readonly containersToKill: ReadonlyMap<string, ContainerToKill>;
  /** In the order to do it. When there are any, nothing is started in this sync: the next one begins anew. */
  readonly containersToReset: readonly ContainerToReset[];
  /** What has to change about resources before anything is started; undefined for nothing. */
  readonly resize?: ResizePlan | undefined;
}

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** What a plan depends on besides the pod's spec and what the runtime says. Values only: a plan asks nobody. */
export interface PlanContext {
  /** By the runtime's container id; undefined while there is no result. */
  readonly liveness: (containerId: string) => ProbeResult | undefined;
  readonly startup: (containerId: string) => ProbeResult | undefined;
  /**
   * The sandbox in which all init containers are known to have done their work, from a record that outlives the
   * containers: without it, init containers run again once the runtime has forgotten them.
   */
  readonly initializedSandboxId?: string | undefined;
  /** Set when an exit asked for all containers to be restarted. */
  readonly restart?: 'all-containers' | undefined;
  /** The resources the runtime was last told, where that is known: containers that have others are resized. */
  readonly actuated?: PodAllocation | undefined;
}
