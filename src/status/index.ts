export { findCondition, isOurCondition, isOwnedCondition } from './conditions.ts';
export type { ProbedFlags, ProbeResults, StartError, StatusContext } from './context.ts';
export { generatePodStatus, needsReadinessReconcile, rejectedPodStatus } from './generate.ts';
export { MirrorPods, type MirrorPodsDeps, mirrorNames } from './mirror/index.ts';
export { hasStartedRegular, type Phase, type PhaseInput, podPhase } from './phase.ts';
export { saysRestartingAll } from './restart-all.ts';
export { sameStatus } from './same-status.ts';
export {
  type StatusChange,
  StatusManager,
  type StatusManagerDeps,
  type StatusSource,
  type VersionedStatus,
} from './status-manager.ts';
export {
  StatusWriter,
  type StatusWriterDeps,
  type StatusWriterObserver,
  statusWriterMetrics,
} from './writer/index.ts';
