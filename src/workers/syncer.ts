import { mayRun, type ObservedPod, type Pod, type PodUid, type RuntimePod } from '../pods/index.ts';
import type { StatusFn, UpdateType } from './updates.ts';

interface SyncContext {
  readonly pod: Pod;
  /** The state of the pod in the runtime, observed after its last sync. */
  readonly observed: ObservedPod;
  /** Requests a relist of the pod after this sync; called by a sync that changed something. */
  readonly requestRelist: () => void;
}

export interface SyncPodContext extends SyncContext {
  readonly updateType: UpdateType;
  readonly mirrorPod: Pod | undefined;
}

export interface SyncTerminatingContext extends SyncContext {
  readonly updateType: UpdateType;
  /** Undefined for a pod that ended by itself: the spec's applies. Otherwise at least 1. */
  readonly graceSeconds: number | undefined;
  /** The newest one at each read: it may be set while the pod is being stopped. */
  readonly statusFn: StatusFn | undefined;
  /**
   * Returns an observation of the pod that begins now. If nothing is changed after it, the next
   * sync reuses it.
   */
  readonly observeNow: (signal: AbortSignal) => Promise<ObservedPod>;
}

export type SyncTerminatedContext = SyncContext;

export interface SyncRuntimePodContext {
  readonly runningPod: RuntimePod;
  readonly graceSeconds: number;
  readonly requestRelist: () => void;
}

/**
 * The operations of a worker in each state of a pod. Each may be called repeatedly, but never
 * concurrently for one pod. The signal is aborted when the pod has to terminate, or with a shorter
 * grace period, or when the kubelet stops: then the operation throws as soon as it leaves nothing
 * half done. After any error the worker retries; an error may contain the time of the retry in its
 * details (see earliestRetryMs).
 */
export interface PodSyncer {
  /**
   * Starts what the pod spec requires. Returns `terminal` when the pod has ended by itself and must
   * be torn down.
   */
  syncPod(context: SyncPodContext, signal: AbortSignal): Promise<'terminal' | 'not-terminal'>;
  /** Stops the pod; afterwards no container of it runs or will be started. */
  syncTerminatingPod(context: SyncTerminatingContext, signal: AbortSignal): Promise<void>;
  /** The same for a pod that only the runtime has. */
  syncTerminatingRuntimePod(context: SyncRuntimePodContext, signal: AbortSignal): Promise<void>;
  /** Releases the other resources of the pod: volumes, secrets, cgroup. */
  syncTerminatedPod(context: SyncTerminatedContext, signal: AbortSignal): Promise<void>;
}

/**
 * The last observations of pods; a pod that the runtime does not have is one without sandboxes and
 * containers.
 */
export interface ObservedPods {
  /** Throws if the last inspection of the pod failed. */
  get(uid: PodUid): ObservedPod;
  /** Waits for an observation that began after the stamp; rejects if its inspection failed. */
  getNewerThan(uid: PodUid, stamp: number, signal: AbortSignal): Promise<ObservedPod>;
}

/**
 * A sandbox that is not ready may still hold processes and an address; stopping it again is cheap.
 */
export function mayRunAny({ containers, sandboxes }: ObservedPod): boolean {
  return containers.some(mayRun) || sandboxes.length > 0;
}
