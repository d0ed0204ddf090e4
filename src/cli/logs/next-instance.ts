import type { Container, ContainerStatus } from '../../kinds/index.ts';
import {
  ephemeralContainersOf,
  initContainersOf,
  isTerminalPhase,
  type Pod,
  restartsAfterExit,
} from '../../pods/index.ts';
import { containerStatusOf } from '../streams/choose-pod.ts';

/** Progress of reading a container's instances, by their IDs. */
export type Progress =
  | { readonly kind: 'begun' }
  /** Reading this instance was interrupted. */
  | { readonly kind: 'inside'; readonly id: string }
  /** This instance was read completely. */
  | { readonly kind: 'behind'; readonly id: string };

export type NextInstance =
  | { readonly kind: 'read'; readonly id: string }
  | { readonly kind: 'wait' }
  /**
   * An instance that was read completely still runs: the status is stale, or the log has not ended.
   */
  | { readonly kind: 'doubt' }
  /** No further instance will start. */
  | { readonly kind: 'over' };

/** Decides which instance of a container to read next, so that no existing instance is skipped. */
export function nextInstance(pod: Pod, name: string, progress: Progress): NextInstance {
  const status = containerStatusOf(pod, name);
  const last = idOf(status?.lastState?.terminated?.containerID);
  const newest = newestId(status);
  if (progress.kind === 'begun') return read(newest ?? last) ?? { kind: 'wait' };
  const isKnown = progress.id === last || progress.id === newest;
  if (progress.kind === 'inside' && isKnown) return { kind: 'read', id: progress.id };
  if (progress.id === newest && status?.state?.running !== undefined && !isTerminalPhase(pod.status.phase))
    return { kind: 'doubt' };
  if (progress.id === newest) return mayRestart(pod, name, status) ? { kind: 'wait' } : { kind: 'over' };
  // An instance that no longer exists is older than both, so the older one is next.
  const next = progress.id === last ? read(newest) : (read(last) ?? read(newest));
  if (next !== undefined) return next;
  return isTerminalPhase(pod.status.phase) ? { kind: 'over' } : { kind: 'wait' };
}

function newestId(status: ContainerStatus | undefined): string | undefined {
  const { running, terminated } = status?.state ?? {};
  return idOf(running === undefined ? terminated?.containerID : status?.containerID);
}

/** ID of an exited instance. */
function mayRestart(pod: Pod, name: string, status: ContainerStatus | undefined): boolean {
  if (isTerminalPhase(pod.status.phase)) return false;
  const ended = status?.state?.terminated;
  if (ended === undefined) return true;
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  const container = containersOf(pod).find((each) => each.name === name);
  if (container === undefined || ephemeralContainersOf(pod).some((each) => each.name === name)) return false;
  const isPlainInit = initContainersOf(pod).includes(container) && container.restartPolicy !== 'Always';
  return isPlainInit
    ? ended.exitCode !== 0 && pod.spec.restartPolicy !== 'Never'
    : restartsAfterExit(pod, container, ended.exitCode ?? 0);
}

/** In their start order: init containers, containers, ephemeral containers. */
export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

function idOf(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function read(id: string | undefined): NextInstance | undefined {
  return id === undefined ? undefined : { kind: 'read', id };
}
