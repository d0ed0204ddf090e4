export { computePodActions } from './compute-pod-actions.ts';
export {
  type AnnotatedContainer,
  containerAnnotations,
  readContainerAnnotations,
} from './container-annotations.ts';
export { type ContainerInputs, containerConfig, type DeviceGrants } from './container-config.ts';
export { ContainerDeletor, type Surplus, surplusContainers } from './container-deletor.ts';
export { ContainerGc, type GcPods, type GcPolicy, type GcScope } from './container-gc.ts';

export { CrashBackoff, type CrashBackoffOptions, type RestartDelay } from './crash-backoff.ts';
export * from './credentials/index.ts';
export { type ClusterDns, checkResolvConf, type DnsSettings, type PodDns, podDns } from './dns.ts';
export { type DownwardAddresses, formatMap, orderPodIps, podField } from './downward-fields.ts';
export {
  containerEnvironment,
  type EnvironmentInputs,
  expandProbeCommand,
  type ObjectLookup,
  type Variable,
} from './environment.ts';
export { ExpansionBudget } from './expansion.ts';
export { type BegunPreStop, type HookNotes, noHookNotes } from './hook-notes.ts';
export { type HookRunner, type HookTarget, noHooks } from './hook-runner.ts';
export { type HookObserver, hookMetrics } from './hooks/hook-metrics.ts';
export { LifecycleHooks, type LifecycleHooksDeps } from './hooks/lifecycle-hooks.ts';
export { kernelHostname, type PodHostname, podHostname } from './hostname.ts';
export { type HostsFileInputs, hostsFile, hostsFilePath } from './hosts-file.ts';
export * from './image-gc/index.ts';
export {
  type EnsuredImage,
  type ImageFacts,
  type ImageFailureReason,
  ImageManager,
} from './image-manager.ts';
export type { PullLimits } from './image-pulls.ts';
export { initializedSandbox } from './init-container-actions.ts';
export { containerLabels, type LabelledOwner, labels, readOwner, sandboxLabels } from './labels.ts';
export {
  containerResources,
  type LinuxNode,
  mayUseSwap,
  overheadResources,
  type ResourceGrants,
  sandboxResources,
} from './linux-resources.ts';
export {
  containerIdOfLogLink,
  containerLogDirectory,
  containerLogLink,
  containerLogLinks,
  containerLogPath,
  type LogLinkOwner,
  podLogDirectory,
  podUidOfLogDirectory,
  restartCountFromLogs,
} from './log-paths.ts';
export * from './log-rotation/index.ts';
export type { RotationFiles } from './log-rotation/rotation-files.ts';
export * from './logs/index.ts';
export type { LogFiles, LogHandle, LogHint } from './logs/log-files.ts';
export { resizeDurations, type StartObserver, startMetrics } from './metrics.ts';
export { containerMounts, type MountableVolume, type MountInputs, type SubPath } from './mounts.ts';
export {
  NodePlanner,
  type NodePlannerDeps,
  type NodePlannerSettings,
} from './node-planner.ts';
export { RuntimeObserver } from './observe.ts';
export { oomScoreAdj } from './oom-score.ts';
export type { PlanContext, ProbeResult } from './plan-context.ts';
export type { ContainerToKill, ContainerToReset, KillReason, PodActions } from './pod-actions.ts';
export { type ContainerKill, type KillablePod, type KillPodRequest, PodKiller } from './pod-kill.ts';
export type {
  ContainerPlan,
  ContainerRequest,
  PlannedFile,
  PodPlanner,
  SandboxPlan,
} from './pod-planner.ts';
export {
  PodRuntime,
  type PodRuntimeDeps,
  type PodRuntimeSettings,
  type RestartRequest,
} from './pod-runtime.ts';
export { PodStreams, type PodStreamsDeps, type ProcessStreams } from './pod-streams.ts';
export type { SyncPodRequest } from './pod-sync.ts';
export { type PodUsersDeps, podUsers } from './pod-users.ts';
export * from './pull-records/index.ts';
export { ReasonCache, type StartOutcome, type WaitingReason } from './reason-cache.ts';
export type { ActuatedResources } from './resize/actuated.ts';
export type { PodLimits, PodLimitsAccess } from './resize/pod-limits.ts';
export { parseResolvConf, type ResolverConfig } from './resolv-conf.ts';
export { resourceField } from './resource-field.ts';
export { restoreContainer, restorePod } from './restored-spec.ts';
export {
  type FoundClass,
  type HandlerAbilities,
  handlersAsClasses,
  type RuntimeClasses,
  runtimeHandlerOf,
} from './runtime-classes.ts';
export { type FileKind, type RuntimeFiles, realRuntimeFiles } from './runtime-files.ts';
export { decideSandbox, type SandboxDecision } from './sandbox-changed.ts';
export { type PlannedSandboxConfig, type SandboxInputs, sandboxConfig } from './sandbox-config.ts';
export { cpuTimesIn, SandboxTurns } from './sandbox-turns.ts';
export {
  containerSecurityContext,
  type ImageUser,
  imageUser,
  type SecurityInputs,
} from './security-context.ts';
export { appArmorProblem, appArmorProfile, type SeccompSettings } from './security-profiles.ts';
export { type KnownServices, serviceVariables } from './service-variables.ts';
export { specHash } from './spec-hash.ts';
export { noStartNotes, type StartNotes, withUnansweredStart } from './start-notes.ts';
export type { ActionFailure, KillResult, SyncAction, SyncPodResult } from './sync-result.ts';
export { type SysctlRules, sysctlProblem } from './sysctls.ts';
export { idsOfBlock, UserNamespaces, type UserNamespacesDeps } from './user-namespaces.ts';
export { memoryVolumeParts, realVolumeParts, type VolumeParts } from './volume-parts.ts';
