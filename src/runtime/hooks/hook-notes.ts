import type { Pod, PodUid } from '../../pods/index.ts';

/** A preStop hook that an earlier kubelet has begun. */
export interface BegunPreStop {
  /** Since it began. */
  readonly usedMs: number;
  /** Until the container must have ended; at least a second. */
  readonly msLeft: number;
}

/**
 * Keeps across kubelets how far the hooks of containers have come. What is told holds at once; the answer settles when
 * it is kept, or cannot be for now.
 */
export interface HookNotes {
  /** The container is about to start, and its postStart hook to run. */
  postStartDue(pod: Pod, containerId: string): Promise<void>;
  /** The hook has ended, and what follows from that is done. */
  postStartOver(pod: Pod, containerId: string): Promise<void>;
  /**
   * The containers whose postStart hook has not ended, in the order they were started. Containers start one at a time,
   * but of a start nobody knows the outcome of the hook stays due while the next one starts.
   */
  postStartsOf(uid: PodUid): readonly string[];
  preStopBegun(pod: Pod, containerId: string, graceSeconds: number): Promise<void>;
  /** undefined when no preStop hook of the container was ever begun. */
  preStopOf(uid: PodUid, containerId: string): BegunPreStop | undefined;
  /** The container has ended: nobody asks for its hooks any more. */
  stopped(pod: Pod, containerId: string): Promise<void>;
}

export const noHookNotes: HookNotes = {
  postStartDue: async () => {},
  postStartOver: async () => {},
  postStartsOf: () => [],
  preStopBegun: async () => {},
  preStopOf: () => undefined,
  stopped: async () => {},
};
