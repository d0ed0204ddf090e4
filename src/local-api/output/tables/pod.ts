import type { JsonObject } from '../../../api/index.ts';
import type { ContainerState, ContainerStatus, Pod } from '../../../kinds/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageColumn, ageOf, type Cell, column, nameColumn, orNone, type Printer, wide } from './column.ts';

export const podPrinter: Printer = {
  columns: [
    nameColumn,
    column('Ready', 'The number of ready containers and of all containers.'),
    column('Status', 'The phase of the pod or the reason why it is not running.'),
    column('Restarts', 'The number of container restarts and the time of the last one.'),
    ageColumn,
    wide('IP', 'The primary address of the pod.'),
    wide('Node', 'The node the pod is bound to.'),
    wide('Nominated Node', 'The node on which pods are preempted for this pod.'),
    wide('Readiness Gates', 'The number of satisfied and of all readiness gates.'),
  ],
  cells: (object, nowMs) => podCells(object, nowMs),
  conditions: ({ status }) => completion(status?.['phase']),
};

function podCells(object: StoredObject, nowMs: number): readonly Cell[] {
  const pod = object as unknown as Pod;
  const { ready, total, status, restarts, lastRestart } = podSummary(pod);
  const when = restarts === 0 || lastRestart === undefined ? '' : ` (${ageOf(lastRestart, nowMs)} ago)`;
  return [
    object.metadata.name,
    `${ready}/${total}`,
    status,
    `${restarts}${when}`,
    ageOf(object.metadata.creationTimestamp, nowMs),
    orNone(pod.status?.podIPs?.[0]?.ip),
    orNone(pod.spec?.nodeName),
    orNone(pod.status?.nominatedNodeName),
    gatesOf(pod),
  ];
}

function gatesOf({ spec, status }: Pod): string {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const open = gates.filter(({ conditionType }) => {
    const condition = status?.conditions?.find(({ type }) => type === conditionType);
    return condition?.status === 'True';
  });
  return `${open.length}/${gates.length}`;
}

function completion(phase: unknown): readonly JsonObject[] | undefined {
  if (phase !== 'Succeeded' && phase !== 'Failed') return undefined;
  const message = phase === 'Succeeded' ? 'The pod has completed successfully.' : 'The pod failed.';
  return [{ type: 'Completed', status: 'True', reason: phase, message }];
}

/** The computed values of a pod row. */
export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly status: string;
  readonly restarts: number;
  /** The termination time of the most recently restarted container. */
  readonly lastRestart: string | undefined;
}

function podSummary(pod: Pod): PodSummary {
  const initial = pod.status?.initContainerStatuses ?? [];
  const main = pod.status?.containerStatuses ?? [];
  const sidecars = sidecarNames(pod);
  const isSidecar = ({ name }: ContainerStatus) => sidecars.has(name);
  const blockingIndex = initial.findIndex((each) => !isPassed(each, isSidecar(each)));
  const passed = blockingIndex === -1 ? initial : initial.slice(0, blockingIndex);
  const readySidecars = passed.filter((each) => each.ready && !isCompleted(each)).length;
  const blocking = initial[blockingIndex];
  const initBlockStatus = blocking === undefined ? undefined : initStatus(blocking, blockingIndex, pod);
  const isPastInit = initBlockStatus === undefined || conditionIs(pod, 'Initialized', 'True');
  const counted = isPastInit
    ? [...reachedInitContainers(initial, blockingIndex).filter(isSidecar), ...main]
    : reachedInitContainers(initial, blockingIndex);
  return {
    ready: readySidecars + (isPastInit ? main.filter(isServing).length : 0),
    total: (pod.spec?.containers.length ?? 0) + sidecars.size,
    status: finalStatus(pod, isPastInit ? mainStatus(pod, initBlockStatus) : (initBlockStatus ?? '')),
    restarts: counted.reduce((sum, { restartCount }) => sum + restartCount, 0),
    lastRestart: lastTerminationTime(counted),
  };
}

function sidecarNames({ spec }: Pod): ReadonlySet<string> {
  const all = spec?.initContainers ?? [];
  return new Set(all.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name));
}

/** The init containers up to the first unfinished container; later init containers are ignored. */
function reachedInitContainers(
  initial: readonly ContainerStatus[],
  halt: number,
): readonly ContainerStatus[] {
  return halt === -1 ? initial : initial.slice(0, halt + 1);
}

function isCompleted({ state }: ContainerStatus): boolean {
  return state?.terminated?.exitCode === 0;
}

function isPassed(container: ContainerStatus, isSidecar: boolean): boolean {
  return isCompleted(container) || (isSidecar && container.started === true);
}

function isServing({ ready, state }: ContainerStatus): boolean {
  const isWaiting = (state?.waiting?.reason ?? '') !== '';
  return ready && state?.running !== undefined && state.terminated === undefined && !isWaiting;
}

function initStatus({ state }: ContainerStatus, index: number, { spec }: Pod): string {
  if (state?.terminated !== undefined) return `Init:${terminationReason(state.terminated)}`;
  const waiting = state?.waiting?.reason ?? '';
  if (waiting !== '' && waiting !== 'PodInitializing') return `Init:${waiting}`;
  return `Init:${index}/${spec?.initContainers?.length ?? 0}`;
}

function terminationReason({ reason, signal, exitCode }: NonNullable<ContainerState['terminated']>): string {
  if (reason !== undefined && reason !== '') return reason;
  return signal !== undefined && signal !== 0 ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

/**
 * The status of a pod row: the reason of the first container that is not running, else of an
 * unfinished init container, else of the pod. If the reason is Completed, the status depends on the
 * other containers: Running, the reason of a failed one, or NotReady.
 */
function mainStatus(pod: Pod, stuck: string | undefined): string {
  const reasons = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => {
    if ((state?.waiting?.reason ?? '') !== '') return [{ text: state?.waiting?.reason ?? '', failed: false }];
    const end = state?.terminated;
    return end === undefined ? [] : [{ text: terminationReason(end), failed: end.exitCode !== 0 }];
  });
  const status = reasons[0]?.text ?? stuck ?? podReason(pod);
  if (status !== 'Completed') return status;
  const hasServing = (pod.status?.containerStatuses ?? []).some(isServing);
  if (hasServing && conditionIs(pod, 'Ready', 'True')) return 'Running';
  const failure = reasons.find(({ failed }) => failed)?.text;
  return failure ?? (hasServing ? 'NotReady' : status);
}

function podReason({ status }: Pod): string {
  const gated = status?.conditions?.some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated',
  );
  if (gated === true) return 'SchedulingGated';
  const reason = status?.reason ?? '';
  return reason === '' ? (status?.phase ?? '') : reason;
}

function finalStatus({ metadata, status }: Pod, shown: string): string {
  if (metadata?.deletionTimestamp === undefined) return shown;
  if (status?.reason === 'NodeLost') return 'Unknown';
  return status?.phase === 'Succeeded' || status?.phase === 'Failed' ? shown : 'Terminating';
}

function conditionIs({ status }: Pod, conditionType: string, value: string): boolean {
  return status?.conditions?.some((each) => each.type === conditionType && each.status === value) ?? false;
}

function lastTerminationTime(containers: readonly ContainerStatus[]): string | undefined {
  const ends = containers.flatMap(({ lastState }) => lastState?.terminated?.finishedAt ?? []);
  return ends.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
}
