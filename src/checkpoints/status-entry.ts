import type { PodCondition, PodStatus } from '../kinds/index.ts';
import { initContainersOf, isSidecar, isTerminalPhase, type Pod } from '../pods/index.ts';
import type { ProbedFlags } from '../status/index.ts';
import { areContainerEntries, type ContainerEntries, containerEntries } from './container-entry.ts';

export type ConditionEntry = Pick<PodCondition, 'type' | 'status' | 'lastTransitionTime'>;

/** What a static pod keeps of its status: nobody else remembers it. With a phase it has ended for good. */
export interface StatusEntry extends ContainerEntries {
  readonly startTime: string;
  readonly phase?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly conditions: readonly ConditionEntry[];
  /** Where it was; an address outlives its sandbox. */
  readonly podIPs?: PodStatus['podIPs'];
  /** What was last published of containers that are probed and run, by their full ids. */
  readonly probed?: Readonly<Record<string, ProbedFlags>>;
}

/** Others are written by others, or ask for something to be done. */
const checkpointedConditions: ReadonlySet<string> = new Set([
  'PodScheduled',
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
]);
/** Asks for nothing once the pod has ended. */
const restartingAll = 'AllContainersRestarting';

/** undefined for a pod that has not started. Of one that goes on, what is not true yet will change without a note. */
export function statusEntry(status: PodStatus): StatusEntry | undefined {
  const { startTime, phase, reason, message, conditions = [], podIPs } = status;
  if (startTime === undefined) return undefined;
  const isOver = isTerminalPhase(phase);
  return {
    startTime,
    ...(isOver && { phase, reason, message }),
    ...(podIPs !== undefined && { podIPs }),
    ...containerEntries(status),
    conditions: conditions
      .filter((one) => isCheckpointed(one, isOver ? 'over' : 'goes-on'))
      .map(({ type, status: is, lastTransitionTime }) => ({ type, status: is, lastTransitionTime })),
  };
}

function isCheckpointed({ type, status }: PodCondition, life: 'over' | 'goes-on'): boolean {
  if (life === 'goes-on') return checkpointedConditions.has(type) && status === 'True';
  return checkpointedConditions.has(type) || (type === restartingAll && status === 'False');
}

/** What to note of the containers of the pod that are probed and run; of others it follows from what they are. */
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
