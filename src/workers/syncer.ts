import { mayRun, type ObservedPod, type Pod, type PodUid, type RuntimePod } from '../pods/index.ts';
import type { StatusFn, UpdateType } from './updates.ts';

interface SyncContext {
  readonly pod: Pod;
  /** What the runtime said after the last sync of this pod had ended. */
  readonly observed: ObservedPod;
  /** Asks for another look at the pod as soon as this sync has ended; for a sync that changed something. */
  readonly requestRelist: () => void;
}

export interface SyncPodContext extends SyncContext {
  readonly updateType: UpdateType;
  readonly mirrorPod: Pod | undefined;
}

export interface SyncTerminatingContext extends SyncContext {
  readonly updateType: UpdateType;
  /** undefined for a pod that came to its natural end: its spec's applies. Otherwise at least 1. */
  readonly graceSeconds: number | undefined;
  /** The newest there is each time it is read: one may still come while the pod is being stopped. */
  readonly statusFn: StatusFn | undefined;
  /** What the runtime says of the pod from now on. If nothing is changed after it, the next sync makes do with it. */
  readonly observeNow: (signal: AbortSignal) => Promise<ObservedPod>;
}

export type SyncTerminatedContext = SyncContext;

export interface SyncRuntimePodContext {
  readonly runningPod: RuntimePod;
  readonly graceSeconds: number;
  readonly requestRelist: () => void;
}

/**
 * What a worker does in each state of a pod. Each may be called again and again, never twice at a time for one pod.
 * The signal is aborted when the pod is to be terminated, or sooner than it was, or kubeling ends: then give up as
 * soon as nothing half-done would be lost, and throw. Throwing anything makes the worker try again later; an error
 * with a time to wait for says so in its details (see earliestRetryMs).
 */
export interface PodSyncer {
  /** Brings the pod to its spec. `terminal` says that it has come to its natural end and must be torn down. */
  syncPod(context: SyncPodContext, signal: AbortSignal): Promise<'terminal' | 'not-terminal'>;
  /** Stops the pod; when it returns nothing of it runs and nothing will be started. */
  syncTerminatingPod(context: SyncTerminatingContext, signal: AbortSignal): Promise<void>;
  /** The same for a pod of which only the runtime knows. */
  syncTerminatingRuntimePod(context: SyncRuntimePodContext, signal: AbortSignal): Promise<void>;
  /** Gives back what the pod held besides containers: volumes, secrets, cgroup. */
  syncTerminatedPod(context: SyncTerminatedContext, signal: AbortSignal): Promise<void>;
}

/** What the runtime last said of pods; a pod it never spoke of is one without sandboxes and containers. */
export interface ObservedPods {
  /** Throws if the last look at the pod failed. */
  get(uid: PodUid): ObservedPod;
  /** Waits for a look that began after the stamp; rejects if that look failed. */
  getNewerThan(uid: PodUid, stamp: number, signal: AbortSignal): Promise<ObservedPod>;
}

/** A sandbox that is not ready may still hold processes and an address: to stop it once more costs little. */
export function couldRun({ containers, sandboxes }: ObservedPod): boolean {
  return containers.some(mayRun) || sandboxes.length > 0;
}
