import type { Container } from '../../kinds/index.ts';
import type { PodAllocation } from '../../pods/index.ts';
import type { ResizePlan } from '../resize/resize-plan.ts';

/** Reason for stopping a container; visible to users. */
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
  /** Restored from the runtime when the pod's spec no longer has it. */
  readonly container: Container;
  readonly message: string;
  readonly reason: KillReason;
}

/** An instance removed by RestartAllContainers; its logs are kept. */
export interface ContainerToReset {
  readonly id: string;
  readonly container: Container;
  /** Whether the instance may still run and is stopped before its removal. */
  readonly stopFirst: boolean;
}

/**
 * The plan of one sync, computed by the pure function computePodActions and executed by PodSync.
 * Containers to start are given by their index in the spec.
 */
export interface PodActions {
  /** Whether to stop all containers and sandboxes. */
  readonly killPod: boolean;
  readonly createSandbox: boolean;
  /** The current sandbox, or the one that is replaced; empty for none. */
  readonly sandboxId: string;
  /** Attempt of the sandbox to create. */
  readonly attempt: number;
  readonly initContainersToStart: readonly number[];
  readonly containersToStart: readonly number[];
  readonly ephemeralContainersToStart: readonly number[];
  /** Keyed by container id. */
  readonly containersToKill: ReadonlyMap<string, ContainerToKill>;
  /**
   * In the order of removal. If not empty, this sync starts nothing and the next one plans again.
   */
  readonly containersToReset: readonly ContainerToReset[];
  /** Resource changes before containers are started; undefined for none. */
  readonly resize?: ResizePlan | undefined;
}

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** Inputs of a plan besides the pod's spec and the runtime's state. */
export interface PlanContext {
  /** Keyed by the runtime's container id; undefined without a result. */
  readonly liveness: (containerId: string) => ProbeResult | undefined;
  readonly startup: (containerId: string) => ProbeResult | undefined;
  /**
   * The sandbox in which all init containers finished, from a persisted record. Without it, init
   * containers would run again after the runtime removed them.
   */
  readonly initializedSandboxId?: string | undefined;
  /** Set when a container's exit requested a restart of all containers. */
  readonly restart?: 'all-containers' | undefined;
  /**
   * Resources last applied through the runtime, if known; containers with other allocated resources
   * are resized.
   */
  readonly actuated?: PodAllocation | undefined;
}
