export { findCondition, isOurCondition, isOwnedCondition } from './conditions.ts';
export { endedContainers } from './container-statuses.ts';
export type { PodProbeResults, ProbedFlags, StartError, StatusContext } from './context.ts';
export { generatePodStatus, rejectedPodStatus } from './generate.ts';
export { sameStatus } from './normalize.ts';
export { hasStartedRegular, type Phase, type PhaseInput, podPhase } from './phase.ts';
export { mayRestartAll, reportsRestartingAll } from './restart-all.ts';
export {
  type StatusChange,
  StatusManager,
  type StatusManagerDeps,
  type StatusSource,
  type VersionedStatus,
} from './status-manager.ts';
