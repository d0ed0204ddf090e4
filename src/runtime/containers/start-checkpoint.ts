import type { Container } from '../../kinds/index.ts';
import {
  ephemeralContainersOf,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  restartsAfterExit,
} from '../../pods/index.ts';

/**
 * Persists which container start is in flight. When the kubelet exits during StartContainer, the
 * runtime aborts the start and reports the container as exited.
 */
export interface StartCheckpoint {
  /** Resolves when the start has been recorded in the file, or writing the file has failed. */
  recordStart(pod: Pod, containerId: string): Promise<void>;
  /** Removes the recorded start after StartContainer has returned. */
  clearStart(pod: Pod, containerId: string): Promise<void>;
}

export const noStartCheckpoint: StartCheckpoint = { recordStart: async () => {}, clearStart: async () => {} };

/** The exit code that runtimes report for a container that never ran. */
const startErrorCode = 128;

/**
 * Whether the container may be started only once, so that a failed start would be final; any other
 * container is started again by the next sync.
 */
export function isOnlyStart(pod: Pod, container: Container): boolean {
  const isEphemeral = ephemeralContainersOf(pod).some(({ name }) => name === container.name);
  return isEphemeral || !restartsAfterExit(pod, container, startErrorCode);
}

/**
 * Treats a container that never ran, because the kubelet exited during its start, as created and
 * not started.
 */
export function withInterruptedStart(observed: ObservedPod, containerId: string | undefined): ObservedPod {
  const isUnanswered = ({ id, state, startedAtNs }: ObservedContainer) =>
    id === containerId && state === 'exited' && startedAtNs <= 0n;
  if (!observed.containers.some(isUnanswered)) return observed;
  const containers = observed.containers.map((one) =>
    isUnanswered(one) ? ({ ...one, state: 'created' } as const) : one,
  );
  return { ...observed, containers };
}
