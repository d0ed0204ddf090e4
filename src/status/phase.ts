import type { Container, ContainerStatus } from '../kinds/index.ts';
import {
  findNamed,
  initContainersOf,
  isSidecar,
  isStaticPod,
  type ObservedPod,
  type Pod,
  restartsAfterExit,
} from '../pods/index.ts';
import { restartingAll } from './restart-all.ts';

export type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

export interface PhaseInput {
  readonly pod: Pod;
  /** Statuses of init and regular containers. */
  readonly statuses: readonly ContainerStatus[];
  readonly isTerminal: boolean;
  /**
   * Whether a regular container was created in the current sandbox, which implies that
   * initialization completed.
   */
  readonly hasStartedRegular: boolean;
}

type Counted =
  | 'pending-init'
  | 'failed-init'
  | 'pending-sidecar'
  | 'unknown'
  | 'running'
  | 'waiting'
  | 'stopped'
  | 'stopped-for-good'
  | 'succeeded';

/**
 * Computes the phase from the containers of the pod. A pure function; the published phase may
 * override the result.
 */
export function podPhase(input: PhaseInput): Phase {
  const count = countContainers(input);
  if (count('failed-init') > 0) return 'Failed';
  const isInitializing =
    count('pending-init') > 0 || (count('pending-sidecar') > 0 && !input.hasStartedRegular);
  if (isInitializing || count('waiting') > 0 || count('unknown') > 0) return 'Pending';
  if (count('running') > 0) return 'Running';
  if (count('stopped') === 0) return 'Pending';
  const isOver = input.isTerminal && !isStaticPod(input.pod);
  if (!isOver && count('stopped') > count('stopped-for-good')) return 'Running';
  return count('succeeded') === count('stopped') ? 'Succeeded' : 'Failed';
}

/** Whether the newest sandbox is ready and has or had an instance of a regular container. */
export function hasStartedRegular(pod: Pod, { sandboxes, containers }: ObservedPod): boolean {
  const sandbox = sandboxes[0];
  if (sandbox?.state !== 'ready') return false;
  const regular = new Set(pod.spec.containers.map(({ name }) => name));
  return containers.some(({ name, sandboxId }) => sandboxId === sandbox.id && regular.has(name));
}

function countContainers(input: PhaseInput): (what: Counted) => number {
  const { pod } = input;
  const counts = new Map<Counted, number>();
  const count = (
    containers: readonly Container[],
    kind: (container: Container, seen: ObservedContainerState) => readonly Counted[],
  ) => {
    for (const container of containers) {
      for (const what of kind(container, see(input, container)))
        counts.set(what, (counts.get(what) ?? 0) + 1);
    }
  };
  count(
    initContainersOf(pod).filter((one) => !isSidecar(one)),
    countInit,
  );
  count(initContainersOf(pod).filter(isSidecar), countSidecar);
  count(pod.spec.containers, countRegular);
  return (what) => counts.get(what) ?? 0;
}

/** The parts of a container status that determine the phase. */
type ObservedContainerState =
  | { readonly is: 'missing' }
  | { readonly is: 'running'; readonly started: boolean }
  /**
   * `ended`: the container has terminated; `waiting-again`: it has terminated and waits to restart.
   */
  | { readonly is: 'ended' | 'waiting-again'; readonly exitCode: number; readonly restarts: boolean }
  | { readonly is: 'waiting' };

function see({ pod, statuses }: PhaseInput, container: Container): ObservedContainerState {
  const status = findNamed(statuses, container.name);
  if (status === undefined) return { is: 'missing' };
  const { state, lastState, started } = status;
  if (state?.running !== undefined) return { is: 'running', started: started === true };
  const ended = state?.terminated ?? (state?.waiting === undefined ? undefined : lastState?.terminated);
  if (ended === undefined) return state?.waiting === undefined ? { is: 'missing' } : { is: 'waiting' };
  const restarts = ended.reason === restartingAll || restartsAfterExit(pod, container, ended.exitCode);
  return {
    is: state?.terminated === undefined ? 'waiting-again' : 'ended',
    exitCode: ended.exitCode,
    restarts,
  };
}

function countInit(_: Container, seen: ObservedContainerState): readonly Counted[] {
  if (seen.is !== 'ended' && seen.is !== 'waiting-again') return ['pending-init'];
  return seen.exitCode !== 0 && !seen.restarts ? ['failed-init'] : [];
}

/** A sidecar that terminated and restarts does not affect the phase. */
function countSidecar(_: Container, seen: ObservedContainerState): readonly Counted[] {
  switch (seen.is) {
    case 'missing':
      return ['unknown'];
    case 'running':
      return seen.started ? ['running'] : ['running', 'pending-sidecar'];
    case 'waiting':
      return ['waiting', 'pending-sidecar'];
    case 'ended':
    case 'waiting-again':
      return [];
  }
}

function countRegular(_: Container, seen: ObservedContainerState): readonly Counted[] {
  switch (seen.is) {
    case 'missing':
      return ['unknown'];
    case 'running':
    case 'waiting':
      return [seen.is];
    case 'ended':
    case 'waiting-again': {
      const stopped: readonly Counted[] = seen.restarts ? [] : ['stopped-for-good'];
      // A container that waits to restart has not succeeded, whatever its last exit code is.
      const succeeded: readonly Counted[] = seen.is === 'ended' && seen.exitCode === 0 ? ['succeeded'] : [];
      return ['stopped', ...stopped, ...succeeded];
    }
  }
}
