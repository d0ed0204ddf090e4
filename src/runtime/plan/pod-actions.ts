import type { Container } from '../../kinds/index.ts';
import type { PodAllocation } from '../../pods/index.ts';
import type { ResizePlan } from '../resize/resize-plan.ts';

/** Reason for stopping a container; shown to users. */
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
  /**
   * The container's spec, restored from the runtime when the pod's spec no longer contains the
   * container.
   */
  readonly container: Container;
  readonly message: string;
  readonly reason: KillReason;
}

/** A container instance that RestartAllContainers removes; its logs are kept. */
export interface ContainerToReset {
  readonly id: string;
  readonly container: Container;
  /** Whether the instance may still run, so that it is stopped before its removal. */
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
  /** Id of the current sandbox, or of the sandbox to replace; empty when the pod has none or its network mode has changed. */
  readonly sandboxId: string;
  /** Attempt number of the sandbox to create. */
  readonly attempt: number;
  readonly initContainersToStart: readonly number[];
  readonly containersToStart: readonly number[];
  readonly ephemeralContainersToStart: readonly number[];
  /** Containers to stop, keyed by container id. */
  readonly containersToKill: ReadonlyMap<string, ContainerToKill>;
  /**
   * Containers to remove, in this order. If there are any, this sync starts nothing and the next
   * sync plans again.
   */
  readonly containersToReset: readonly ContainerToReset[];
  /** Resources to change in place before containers are started; undefined when none change. */
  readonly resize?: ResizePlan | undefined;
}

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** Inputs of a plan besides the pod's spec and the runtime's state. */
export interface PlanContext {
  /**
   * Last liveness probe result of a container, by the runtime's container id; undefined when there
   * is no result.
   */
  readonly liveness: (containerId: string) => ProbeResult | undefined;
  readonly startup: (containerId: string) => ProbeResult | undefined;
  /**
   * Id of the sandbox in which all init containers finished, from a persisted record. Without the
   * record, init containers would run again after the runtime removed them.
   */
  readonly initializedSandboxId?: string | undefined;
  /**
   * Whether a container that the runtime no longer lists stays stopped, because its last status is
   * a final exit.
   */
  readonly hasFinalExit?: ((container: Container) => boolean) | undefined;
  /** Set when a container's exit requested a restart of all containers of the pod. */
  readonly restart?: 'all-containers' | undefined;
  /**
   * Resources last applied through the runtime, when recorded; containers whose allocation differs
   * are resized.
   */
  readonly actuated?: PodAllocation | undefined;
}
