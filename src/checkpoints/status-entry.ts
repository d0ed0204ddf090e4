import type { PodCondition, PodStatus } from '../kinds/index.ts';
import { initContainersOf, isSidecar, isTerminalPhase, type Pod } from '../pods/index.ts';
import type { ProbedFlags } from '../status/index.ts';
import { areContainerEntries, type ContainerEntries, containerEntries } from './container-entry.ts';

export type ConditionEntry = Pick<PodCondition, 'type' | 'status' | 'lastTransitionTime'>;

/**
 * The part of a static pod's status that a restarted kubelet cannot read elsewhere. The phase is
 * set only if the pod has finished.
 */
export interface StatusEntry extends ContainerEntries {
  readonly startTime: string;
  readonly phase?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly conditions: readonly ConditionEntry[];
  /** The last IP addresses of the pod, still reported after its sandbox is removed. */
  readonly podIPs?: PodStatus['podIPs'];
  /**
   * The last published `started` and `ready` flags of probed, running containers, by full container
   * ID.
   */
  readonly probed?: Readonly<Record<string, ProbedFlags>>;
}

/**
 * The pod conditions to store; all other conditions are set by other components, or request an
 * action.
 */
const checkpointedConditions: ReadonlySet<string> = new Set([
  'PodScheduled',
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
]);
/**
 * A condition that requests a restart of all containers, which has no effect after the pod has
 * finished.
 */
const restartingAll = 'AllContainersRestarting';

/**
 * Returns the status to store; undefined for a pod that has not started. Conditions of a running
 * pod that are not true are omitted, because they will change.
 */
export function statusEntry(status: PodStatus): StatusEntry | undefined {
  const { startTime, phase, reason, message, conditions = [], podIPs } = status;
  if (startTime === undefined) return undefined;
  const hasFinished = isTerminalPhase(phase);
  return {
    startTime,
    ...(hasFinished && { phase, reason, message }),
    ...(podIPs !== undefined && { podIPs }),
    ...containerEntries(status),
    conditions: conditions
      .filter((one) => isCheckpointed(one, hasFinished ? 'finished' : 'running'))
      .map(({ type, status: is, lastTransitionTime }) => ({ type, status: is, lastTransitionTime })),
  };
}

function isCheckpointed({ type, status }: PodCondition, life: 'finished' | 'running'): boolean {
  if (life === 'running') return checkpointedConditions.has(type) && status === 'True';
  return checkpointedConditions.has(type) || (type === restartingAll && status === 'False');
}

/**
 * Returns the `started` and `ready` flags of probed, running containers; the flags of all other
 * containers follow from their state.
 */
export function probedFlags(pod: Pod, status: PodStatus): Readonly<Record<string, ProbedFlags>> {
  const isProbed = new Set(
    [...pod.spec.containers, ...initContainersOf(pod).filter(isSidecar)]
      .filter((one) => one.readinessProbe !== undefined || one.startupProbe !== undefined)
      .map(({ name }) => name),
  );
  if (isProbed.size === 0) return {};
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  return Object.fromEntries(
    all
      .filter(({ name, state }) => isProbed.has(name) && state?.running !== undefined)
      .map(({ containerID = '', started, ready }) => [containerID, { started: started === true, ready }]),
  );
}

export function isStatusEntry(value: unknown): value is StatusEntry {
  if (!isRecord(value) || !isTime(value['startTime'])) return false;
  const { phase, reason, message, conditions, probed } = value;
  if (phase !== undefined && phase !== 'Succeeded' && phase !== 'Failed') return false;
  if (![reason, message].every((text) => text === undefined || typeof text === 'string')) return false;
  if (probed !== undefined && !(isRecord(probed) && Object.values(probed).every(isProbedFlags))) return false;
  if (!areContainerEntries(value) || !areAddresses(value['podIPs'])) return false;
  return Array.isArray(conditions) && conditions.every(isConditionEntry);
}

function areAddresses(value: unknown): boolean {
  if (value === undefined) return true;
  return Array.isArray(value) && value.every((one) => isRecord(one) && typeof one['ip'] === 'string');
}

function isConditionEntry(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string') return false;
  const { type, status, lastTransitionTime } = value;
  const isKnown = checkpointedConditions.has(type) || (type === restartingAll && status === 'False');
  return isKnown && typeof status === 'string' && isTime(lastTransitionTime);
}

function isProbedFlags(value: unknown): boolean {
  return isRecord(value) && typeof value['started'] === 'boolean' && typeof value['ready'] === 'boolean';
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
