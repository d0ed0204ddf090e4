export type { Lifecycle, LifecycleState, Transition } from './lifecycle.ts';
export { type WorkerObserver, workerMetrics } from './metrics.ts';
export type { WorkerSummary } from './orphans.ts';
export { type KillNowOptions, PodControl, type PodControlDeps } from './pod-control.ts';
export { type BusyWorker, PodWorkers, type PodWorkersDeps } from './pod-workers.ts';
export { PodWorkerQueries } from './queries.ts';
export type {
  ObservedPods,
  PodSyncer,
  SyncPodContext,
  SyncRuntimePodContext,
  SyncTerminatedContext,
  SyncTerminatingContext,
} from './syncer.ts';
export type { KillOptions, StatusFn, UpdatePodOptions, UpdateType } from './updates.ts';
export { Watchdog } from './watchdog.ts';
export { WorkerState, type WorkerStateDeps } from './worker-state.ts';
