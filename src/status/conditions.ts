import type { ContainerStatus, PodCondition, PodStatus } from '../kinds/index.ts';
import { findNamed, initContainersOf, isSidecar, type ObservedPod, type Pod } from '../pods/index.ts';
import { restartingConditions } from './restart-all.ts';

/** Types of pod conditions that only the kubelet writes. */
const owned: ReadonlySet<string> = new Set([
  'PodScheduled',
  'Initialized',
  'ContainersReady',
  'Ready',
  'PodReadyToStartContainers',
  'PodResizePending',
  'PodResizeInProgress',
  'AllContainersRestarting',
]);
/** A condition type that other components write too. */
const shared = 'DisruptionTarget';

export function isOwnedCondition(type: string): boolean {
  return owned.has(type);
}

export function isResizeCondition(type: string): boolean {
  return type === 'PodResizePending' || type === 'PodResizeInProgress';
}

/** Whether the kubelet writes conditions of this type. */
export function isOurCondition(type: string): boolean {
  return owned.has(type) || type === shared;
}

export function findCondition(status: PodStatus, type: string): PodCondition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}

/** True, or the reason and message of a condition that is false. */
type ConditionResult =
  | { readonly is: 'True'; readonly reason?: string }
  | { readonly is: 'False'; readonly reason?: string; readonly message?: string };

const yes: ConditionResult = { is: 'True' };

export interface ConditionInput {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  /** The pod's status without conditions: phase and container statuses. */
  readonly status: PodStatus;
  readonly previous: PodStatus;
  readonly hasUsableSandbox: boolean;
  /** The resize conditions of the pod. */
  readonly resize?: readonly PodCondition[] | undefined;
}

/**
 * Computes all conditions of the pod. Conditions written by other components are preserved; the
 * status manager sets transition times.
 */
export function podConditions(input: ConditionInput): readonly PodCondition[] {
  const { pod, observed, status, previous } = input;
  const foreign = (pod.status.conditions ?? []).filter(({ type }) => !isOwnedCondition(type));
  const previousCondition = findCondition(previous, shared);
  const disruption = previousCondition === undefined ? [] : [previousCondition];
  const mine = foreign.filter(({ type }) => previousCondition === undefined || type !== shared);
  const others = [...mine, ...(input.resize ?? []), ...disruption];
  return [
    ...others,
    condition(pod, 'PodReadyToStartContainers', input.hasUsableSandbox ? yes : { is: 'False' }),
    condition(pod, 'Initialized', initialized(input)),
    ...readinessConditions(pod, { ...status, conditions: others }),
    condition(pod, 'PodScheduled', yes),
    ...restartingConditions(pod, observed, status, previous),
  ];
}

/**
 * Computes the conditions Ready and ContainersReady from container statuses, phase and readiness
 * gates.
 */
export function readinessConditions(pod: Pod, status: PodStatus): readonly PodCondition[] {
  const containers = containersReady(pod, status);
  const ready = containers.is === 'True' ? gatesReady(pod, status) : containers;
  return [condition(pod, 'Ready', ready), condition(pod, 'ContainersReady', containers)];
}

/**
 * Returns the status with recomputed Ready and ContainersReady conditions, in the same positions.
 */
export function replaceReadiness(pod: Pod, status: PodStatus): PodStatus {
  const before = status.conditions ?? [];
  const computed = readinessConditions(pod, status);
  const added = computed.filter(({ type }) => !before.some((one) => one.type === type));
  const replaced = before.map((one) => computed.find(({ type }) => type === one.type) ?? one);
  return { ...status, conditions: [...replaced, ...added] };
}

function condition(pod: Pod, type: string, result: ConditionResult): PodCondition {
  const message = result.is === 'False' ? result.message : undefined;
  const { is: status, reason } = result;
  return { type, status, reason, message, observedGeneration: pod.metadata.generation };
}

function statusesOf({ initContainerStatuses, containerStatuses }: PodStatus): readonly ContainerStatus[] {
  return [...(initContainerStatuses ?? []), ...(containerStatuses ?? [])];
}

function containersReady(pod: Pod, status: PodStatus): ConditionResult {
  const statuses = statusesOf(status);
  if (status.containerStatuses === undefined) return { is: 'False', reason: 'UnknownContainerStatuses' };
  const names = [...initContainersOf(pod).filter(isSidecar), ...pod.spec.containers].map(({ name }) => name);
  const found = (name: string) => findNamed(statuses, name);
  const unknown = names.filter((name) => found(name) === undefined);
  const unready = names.filter((name) => found(name)?.ready === false);
  if (status.phase === 'Succeeded' && unknown.length === 0) return { is: 'False', reason: 'PodCompleted' };
  if (status.phase === 'Failed') return { is: 'False', reason: 'PodFailed' };
  const message = listed({ unknown, unready });
  return message === '' ? yes : { is: 'False', reason: 'ContainersNotReady', message };
}

function gatesReady(pod: Pod, status: PodStatus): ConditionResult {
  const complaints = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const gate = JSON.stringify(conditionType);
    const found = findCondition(status, conditionType);
    if (found === undefined) return [`corresponding condition of pod readiness gate ${gate} does not exist.`];
    return found.status === 'True'
      ? []
      : [`the status of pod readiness gate ${gate} is not "True", but ${found.status}`];
  });
  if (complaints.length === 0) return yes;
  return { is: 'False', reason: 'ReadinessGatesNotReady', message: complaints.join(', ') };
}

function initialized({ pod, status, previous }: ConditionInput): ConditionResult {
  const statuses = status.initContainerStatuses ?? [];
  const containers = initContainersOf(pod);
  const found = (name: string) => findNamed(statuses, name);
  const unknown = containers.filter(({ name }) => found(name) === undefined).map(({ name }) => name);
  const incomplete = containers
    .filter(({ name }) => found(name) !== undefined)
    .filter((one) => found(one.name)?.[isSidecar(one) ? 'started' : 'ready'] !== true)
    .map(({ name }) => name);
  if (status.phase === 'Succeeded' && unknown.length === 0) return { is: 'True', reason: 'PodCompleted' };
  if (hasRun(status)) return yes;
  const message = listed({ unknown, incomplete });
  // An initialized pod stays initialized, even while all its containers restart.
  if (message === '' || findCondition(previous, 'Initialized')?.status === 'True') return yes;
  return { is: 'False', reason: 'ContainersNotInitialized', message };
}

/** Whether a regular container has run, which implies that initialization completed. */
function hasRun({ containerStatuses = [] }: PodStatus): boolean {
  return containerStatuses.some(
    ({ state }) => state?.running !== undefined || state?.terminated !== undefined,
  );
}

function listed(groups: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(groups)
    .filter(([, names]) => names.length > 0)
    .map(([what, names]) => `containers with ${what} status: [${names.join(' ')}]`)
    .join(', ');
}
