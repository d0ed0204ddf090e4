import type { Container, ContainerStatus } from '../../kinds/index.ts';
import {
  ephemeralContainersOf,
  initContainersOf,
  isTerminalPhase,
  type Pod,
  restartsAfterExit,
} from '../../pods/index.ts';
import { containerStatusOf } from '../streams/choose-pod.ts';

/** How far the reading of a container's instances has come; by the ids their statuses give. */
export type Progress =
  | { readonly kind: 'begun' }
  /** The reading of this one broke off. */
  | { readonly kind: 'inside'; readonly id: string }
  /** This one was read to its end. */
  | { readonly kind: 'behind'; readonly id: string };

export type NextInstance =
  | { readonly kind: 'read'; readonly id: string }
  | { readonly kind: 'wait' }
  /** The one that was read to its end is said to run: either that is no news, or it was not the end. */
  | { readonly kind: 'doubt' }
  /** None will come any more. */
  | { readonly kind: 'over' };

/** Which instance of a container is to be read next, so that none that is still there is left out. */
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
  // One we do not know any more is older than both: the next is the older of them.
  const next = progress.id === last ? read(newest) : (read(last) ?? read(newest));
  if (next !== undefined) return next;
  return isTerminalPhase(pod.status.phase) ? { kind: 'over' } : { kind: 'wait' };
}

function newestId(status: ContainerStatus | undefined): string | undefined {
  const { running, terminated } = status?.state ?? {};
  return idOf(running === undefined ? terminated?.containerID : status?.containerID);
}

/** Of one that ended. */
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

/** In the order they start: init containers, the others, then those for debugging. */
export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

function idOf(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function read(id: string | undefined): NextInstance | undefined {
  return id === undefined ? undefined : { kind: 'read', id };
}
