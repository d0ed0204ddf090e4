import type { PodAllocation } from '../../pods/index.ts';

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
