import type { PodCondition, PodStatus, ResourceStatus } from '../kinds/index.ts';
import { apiTime } from '../lib/index.ts';
import type { PodAllocation } from '../pods/index.ts';

/** Why a container could not be started, as its waiting state shows it. */
export interface StartError {
  readonly reason: string;
  readonly message: string;
}

/** What the probes of a container last said, by the full id of the container; undefined for nothing yet. */
export interface ProbeResults {
  startup(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
  readiness(containerId: string): 'success' | 'failure' | 'unknown' | undefined;
}

/** What was published of a container that is probed. */
export interface ProbedFlags {
  readonly started: boolean;
  readonly ready: boolean;
}

/** What a status is made from besides the pod and what the runtime says of it. */
export interface StatusContext {
  /** The status kept for the pod, else the one it came with. */
  readonly previous: PodStatus;
  /** Whether the pod is past the point where anything of it may be started again. */
  readonly isTerminal: boolean;
  /** Whether the newest sandbox can go on serving the pod: ready, alone, right network, with an address. */
  readonly hasUsableSandbox: boolean;
  /** Of the last try to start the container, if that failed. */
  readonly startError: (container: string) => StartError | undefined;
  readonly probes: ProbeResults;
  /** The runtime's own ids of containers that were stopped after that look at the runtime; none unless given. */
  readonly stopped?: ReadonlySet<string> | undefined;
  /** What an earlier kubelet has published of a container, by its full id, where nobody else remembers it. */
  readonly noted?: ((containerId: string) => ProbedFlags | undefined) | undefined;
  /** Whether the pod's runtime can make mounts read-only to their last submount; left out for no. */
  readonly recursiveReadOnly?: 'supported' | 'unsupported' | undefined;
  /** How the devices of a container are; it has none unless given. */
  readonly devices?: ((container: string) => readonly ResourceStatus[]) | undefined;
  /** Where a resize of the pod stands; none unless given. */
  readonly resize?: readonly PodCondition[] | undefined;
  /** What the runtime was told to give the pod: for what it does not say itself. */
  readonly actuated?: PodAllocation | undefined;
  /** The machine's addresses, the preferred first. */
  readonly nodeIps: readonly string[];
  /** Set when the pod has to end whatever its containers do, as when its deadline has passed. */
  readonly eviction?: StartError | undefined;
}

/** Of a time of the runtime, where zero stands for not yet. */
export function apiTimeOfNs(ns: bigint): string | undefined {
  return ns === 0n ? undefined : apiTime(Number(ns / 1_000_000n));
}

/** The same time in whole seconds, whatever it was written with. */
export function wholeSeconds(time: string | undefined): string | undefined {
  if (time === undefined || !time.includes('.')) return time;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : apiTime(ms);
}
