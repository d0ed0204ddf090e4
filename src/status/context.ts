import type { PodCondition, PodStatus, ResourceStatus } from '../kinds/index.ts';
import { apiTime } from '../lib/index.ts';
import type { PodAllocation } from '../pods/index.ts';

/** Why a container failed to start, as shown in its waiting state. */
export interface StartError {
  readonly reason: string;
  readonly message: string;
}

/** The last probe results of a container by its full ID; undefined before the first. */
export interface PodProbeResults {
  startup(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
  readiness(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
}

/** The published values of a probed container. */
export interface ProbedFlags {
  readonly started: boolean;
  readonly ready: boolean;
}

/** The inputs of a status besides the pod and the runtime's report. */
export interface StatusContext {
  /** The cached status of the pod, else the one it was delivered with. */
  readonly previous: PodStatus;
  /** Whether no container of the pod may start again. */
  readonly isTerminal: boolean;
  /**
   * Whether the newest sandbox is usable: ready, the only one, with the right network and an
   * address.
   */
  readonly hasUsableSandbox: boolean;
  /** The error of the last attempt to start the container, if it failed. */
  readonly startError: (container: string) => StartError | undefined;
  readonly probes: PodProbeResults;
  /** The runtime IDs of containers that were stopped after the observation; none unless given. */
  readonly stopped?: ReadonlySet<string> | undefined;
  /**
   * The published values of a container by its full ID from an earlier kubelet, if no other source
   * has them.
   */
  readonly noted?: ((containerId: string) => ProbedFlags | undefined) | undefined;
  /** Whether the runtime of the pod supports recursive read-only mounts; no if left out. */
  readonly recursiveReadOnly?: 'supported' | 'unsupported' | undefined;
  /** The device health of a container; no devices unless given. */
  readonly devices?: ((container: string) => readonly ResourceStatus[]) | undefined;
  /** The state of a resize of the pod; none unless given. */
  readonly resize?: readonly PodCondition[] | undefined;
  /** The resources last sent to the runtime, for values it does not report. */
  readonly actuated?: PodAllocation | undefined;
  /** The addresses of the node, the preferred one first. */
  readonly nodeIps: readonly string[];
  /** Set when the pod must fail whatever its containers do, for example after its deadline. */
  readonly eviction?: StartError | undefined;
}

/** Converts a time of the runtime, where zero means not yet. */
export function apiTimeOfNs(ns: bigint): string | undefined {
  return ns === 0n ? undefined : apiTime(Number(ns / 1_000_000n));
}

/** The same time rounded to whole seconds. */
export function wholeSeconds(time: string | undefined): string | undefined {
  if (time === undefined || !time.includes('.')) return time;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : apiTime(ms);
}
