export type { TrustState } from './event-trust.ts';
export type { PodLifecycleEvent } from './lifecycle-events.ts';
export { type PlegObserver, plegMetrics } from './metrics.ts';
export { Pleg, type PlegOptions, type PlegTimes } from './pleg.ts';
export { type Observation, PodCache } from './pod-cache.ts';
export { RunningPods } from './running-pods.ts';
export type { EventSource, RuntimeHint, RuntimeLister } from './runtime-events.ts';
export { proofContainerId, runtimeEvents } from './runtime-events.ts';
