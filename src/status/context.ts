import type { PodCondition, PodStatus, ResourceStatus } from '../kinds/index.ts';
import { apiTime } from '../lib/index.ts';
import type { PodAllocation } from '../pods/index.ts';

/** Why a container failed to start; shown in its waiting state. */
export interface StartError {
  readonly reason: string;
  readonly message: string;
}

/**
 * The last probe results of a container by its id with scheme; undefined before the first result.
 */
export interface PodProbeResults {
  startup(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
  readiness(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
}

/** The published `started` and `ready` of a probed container. */
export interface ProbedFlags {
  readonly started: boolean;
  readonly ready: boolean;
}

/**
 * Inputs of a pod status besides the pod's spec and the sandboxes and containers read from the
 * runtime.
 */
export interface StatusContext {
  /** The pod's cached status, or the status with which the pod was delivered. */
  readonly previous: PodStatus;
  /** Whether no container of the pod may start again. */
  readonly isTerminal: boolean;
  /**
   * Whether the newest sandbox is usable: it is ready, the only one, and has the right network and
   * an address.
   */
  readonly hasUsableSandbox: boolean;
  /** Returns the error of the last attempt to start the container; undefined when it succeeded. */
  readonly startError: (container: string) => StartError | undefined;
  readonly probes: PodProbeResults;
  /**
   * The runtime's ids of containers that were stopped after the pod was read from the runtime; none
   * when undefined.
   */
  readonly stopped?: ReadonlySet<string> | undefined;
  /**
   * Returns `started` and `ready` that a previous kubelet recorded for a container, by id with
   * scheme; used when there is no other source.
   */
  readonly noted?: ((containerId: string) => ProbedFlags | undefined) | undefined;
  /** Whether the pod's runtime handler supports recursive read-only mounts; undefined means no. */
  readonly recursiveReadOnly?: 'supported' | 'unsupported' | undefined;
  /** Returns the health of a container's devices; undefined when no devices are reported. */
  readonly devices?: ((container: string) => readonly ResourceStatus[]) | undefined;
  /** Resize conditions of the pod; none when undefined. */
  readonly resize?: readonly PodCondition[] | undefined;
  /** The resources last sent to the runtime, for values that the runtime does not report. */
  readonly actuated?: PodAllocation | undefined;
  /** The node's addresses, preferred address first. */
  readonly nodeIps: readonly string[];
  /** Set when the pod must fail regardless of its containers, for example after its deadline. */
  readonly eviction?: StartError | undefined;
}

/**
 * Converts a time of the runtime to the API's format; zero means that the event has not happened
 * and gives undefined.
 */
export function apiTimeOfNs(ns: bigint): string | undefined {
  return ns === 0n ? undefined : apiTime(Number(ns / 1_000_000n));
}

/** Rounds a time to whole seconds. */
export function wholeSeconds(time: string | undefined): string | undefined {
  if (time === undefined || !time.includes('.')) return time;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : apiTime(ms);
}
