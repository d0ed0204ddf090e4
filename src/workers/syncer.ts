import { mayRun, type ObservedPod, type Pod, type PodUid, type RuntimePod } from '../pods/index.ts';
import type { StatusFn, UpdateType } from './updates.ts';

interface SyncContext {
  readonly pod: Pod;
  /** The state of the pod in the runtime, observed after the previous sync of the pod. */
  readonly observed: ObservedPod;
  /**
   * Requests a relist of the pod after this sync; called by a sync that changed containers or
   * sandboxes.
   */
  readonly requestRelist: () => void;
}

export interface SyncPodContext extends SyncContext {
  readonly updateType: UpdateType;
  readonly mirrorPod: Pod | undefined;
}

export interface SyncTerminatingContext extends SyncContext {
  readonly updateType: UpdateType;
  /**
   * The grace period; undefined for a pod that terminated by itself, to which the grace period of
   * the spec applies. Otherwise at least 1.
   */
  readonly graceSeconds: number | undefined;
  /**
   * The newest function that overrides the pod status; read this property again when needed,
   * because the function may be set while the pod is being stopped.
   */
  readonly statusFn: StatusFn | undefined;
  /**
   * Starts an observation of the pod now and returns it. If the sync changes nothing afterwards,
   * the next sync reuses it.
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
 * concurrently for one pod. The signal is aborted when the pod has to terminate, when its grace
 * period is shortened, or when the kubelet stops: the operation then completes the current step and
 * throws. After any error the worker retries; the details of the error may contain the time of the
 * retry (see earliestRetryMs).
 */
export interface PodSyncer {
  /**
   * Starts what the pod spec requires. Returns `terminal` when the pod has terminated by itself and
   * must be torn down.
   */
  syncPod(context: SyncPodContext, signal: AbortSignal): Promise<'terminal' | 'not-terminal'>;
  /** Stops the pod; afterwards no container of it runs or will be started. */
  syncTerminatingPod(context: SyncTerminatingContext, signal: AbortSignal): Promise<void>;
  /**
   * Stops a pod without a spec, which only the runtime has; afterwards no container of the pod
   * runs.
   */
  syncTerminatingRuntimePod(context: SyncRuntimePodContext, signal: AbortSignal): Promise<void>;
  /** Releases the other resources of a stopped pod: volumes, secrets, cgroup. */
  syncTerminatedPod(context: SyncTerminatedContext, signal: AbortSignal): Promise<void>;
}

/**
 * The last observations of pods; for a pod that the runtime does not have, an observation without
 * sandboxes and containers.
 */
export interface ObservedPods {
  /** Returns the last observation of the pod; throws if the inspection failed. */
  get(uid: PodUid): ObservedPod;
  /**
   * Waits for an observation of the pod that began after the given clock stamp; rejects if the
   * inspection of the pod failed.
   */
  getNewerThan(uid: PodUid, stamp: number, signal: AbortSignal): Promise<ObservedPod>;
}

/**
 * Whether sandboxes or containers of the pod may still run. A sandbox that is not ready counts as
 * running: it may hold processes and an address, and stopping it again is cheap.
 */
export function mayRunAny({ containers, sandboxes }: ObservedPod): boolean {
  return containers.some(mayRun) || sandboxes.length > 0;
}
