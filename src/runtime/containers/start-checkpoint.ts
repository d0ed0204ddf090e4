import type { Container } from '../../kinds/index.ts';
import {
  ephemeralContainersOf,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  restartsAfterExit,
} from '../../pods/index.ts';

/**
 * Keeps across kubelets which start of a container was under way. A runtime gives up a start when the one who asked
 * for it is gone, and shows the container as failed.
 */
export interface StartCheckpoint {
  /** Settles when it is kept. */
  recordStart(pod: Pod, containerId: string): Promise<void>;
  /** The runtime has said how it went. */
  clearStart(pod: Pod, containerId: string): Promise<void>;
}

export const noStartCheckpoint: StartCheckpoint = { recordStart: async () => {}, clearStart: async () => {} };

/** What runtimes show as the exit code of a container that never came to run. */
const startErrorCode = 128;

/** Whether a start that comes to nothing would be the end of the container; any other is just started again. */
export function isOnlyStart(pod: Pod, container: Container): boolean {
  const isEphemeral = ephemeralContainersOf(pod).some(({ name }) => name === container.name);
  return isEphemeral || !restartsAfterExit(pod, container, startErrorCode);
}

/**
 * The pod as it is without the failure nobody was told of: a container that never ran because its start was given up
 * with the kubelet that asked for it counts as made and not started.
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
