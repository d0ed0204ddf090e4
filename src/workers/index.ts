export { type KillNowDeps, type KillNowOptions, killPodNow } from './kill-pod-now.ts';
export type { Lifecycle, LifecycleState, Transition } from './lifecycle.ts';
export { type WorkerObserver, workerMetrics } from './metrics.ts';
export type { KnownWorker } from './orphans.ts';
export { type BusyWorker, PodWorkers, type PodWorkersDeps } from './pod-workers.ts';
export type { PodWorkerQueries } from './queries.ts';
export { earliestRetryMs } from './requeue.ts';
export type {
  ObservedPods,
  PodSyncer,
  SyncPodContext,
  SyncRuntimePodContext,
  SyncTerminatedContext,
  SyncTerminatingContext,
} from './syncer.ts';
export type { KillOptions, StatusFn, UpdatePodOptions, UpdateType } from './updates.ts';
