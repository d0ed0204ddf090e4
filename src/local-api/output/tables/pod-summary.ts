import type { ContainerState, ContainerStatus, Pod } from '../../../kinds/index.ts';

/** What one row tells of a pod. */
export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly status: string;
  readonly restarts: number;
  /** When the container that was started anew last had ended. */
  readonly lastRestart: string | undefined;
}

export function podSummary(pod: Pod): PodSummary {
  const initial = pod.status?.initContainerStatuses ?? [];
  const main = pod.status?.containerStatuses ?? [];
  const sidecars = sidecarNames(pod);
  const isSidecar = ({ name }: ContainerStatus) => sidecars.has(name);
  const halt = initial.findIndex((each) => !isPassed(each, isSidecar(each)));
  const passed = halt === -1 ? initial : initial.slice(0, halt);
  const readySidecars = passed.filter((each) => each.ready && !isCompleted(each)).length;
  const halted = initial[halt];
  const stuck = halted === undefined ? undefined : initStatus(halted, halt, pod);
  const isPastInit = stuck === undefined || conditionIs(pod, 'Initialized', 'True');
  const counted = isPastInit
    ? [...initialSeen(initial, halt).filter(isSidecar), ...main]
    : initialSeen(initial, halt);
  return {
    ready: readySidecars + (isPastInit ? main.filter(isServing).length : 0),
    total: (pod.spec?.containers.length ?? 0) + sidecars.size,
    status: finalStatus(pod, isPastInit ? mainStatus(pod, stuck) : (stuck ?? '')),
    restarts: counted.reduce((sum, { restartCount }) => sum + restartCount, 0),
    lastRestart: latestEnd(counted),
  };
}

function sidecarNames({ spec }: Pod): ReadonlySet<string> {
  const all = spec?.initContainers ?? [];
  return new Set(all.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name));
}

/** Init containers behind the one that holds the pod up are not looked at. */
function initialSeen(initial: readonly ContainerStatus[], halt: number): readonly ContainerStatus[] {
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
  if (state?.terminated !== undefined) return `Init:${endOf(state.terminated)}`;
  const waiting = state?.waiting?.reason ?? '';
  if (waiting !== '' && waiting !== 'PodInitializing') return `Init:${waiting}`;
  return `Init:${index}/${spec?.initContainers?.length ?? 0}`;
}

function endOf({ reason, signal, exitCode }: NonNullable<ContainerState['terminated']>): string {
  if (reason !== undefined && reason !== '') return reason;
  return signal !== undefined && signal !== 0 ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

/** What the first container with anything to say tells, else what is known of the whole pod. */
function mainStatus(pod: Pod, stuck: string | undefined): string {
  const told = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => {
    if ((state?.waiting?.reason ?? '') !== '') return [{ text: state?.waiting?.reason ?? '', failed: false }];
    const end = state?.terminated;
    return end === undefined ? [] : [{ text: endOf(end), failed: end.exitCode !== 0 }];
  });
  const status = told[0]?.text ?? stuck ?? podReason(pod);
  if (status !== 'Completed') return status;
  const hasServing = (pod.status?.containerStatuses ?? []).some(isServing);
  if (hasServing && conditionIs(pod, 'Ready', 'True')) return 'Running';
  const failure = told.find(({ failed }) => failed)?.text;
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

function conditionIs({ status }: Pod, wanted: string, value: string): boolean {
  return status?.conditions?.some((each) => each.type === wanted && each.status === value) ?? false;
}

function latestEnd(containers: readonly ContainerStatus[]): string | undefined {
  const ends = containers.flatMap(({ lastState }) => lastState?.terminated?.finishedAt ?? []);
  return ends.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
}
