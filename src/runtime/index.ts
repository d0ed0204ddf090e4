export {
  type AnnotatedContainer,
  containerAnnotations,
  readContainerAnnotations,
} from './containers/container-annotations.ts';
export { type ContainerInputs, containerConfig, type DeviceGrants } from './containers/container-config.ts';
export { ContainerDeletor, type Surplus, surplusContainers } from './containers/container-deletor.ts';
export { ContainerGc, type GcPods, type GcPolicy, type GcScope } from './containers/container-gc.ts';
export { type DownwardAddresses, formatMap, orderPodIps, podField } from './containers/downward-fields.ts';
export {
  containerEnvironment,
  type EnvironmentInputs,
  expandProbeCommand,
  type ObjectLookup,
  type Variable,
} from './containers/environment.ts';
export { ExpansionBudget } from './containers/expansion.ts';
export {
  containerLabels,
  type LabelledOwner,
  labels,
  readOwner,
  sandboxLabels,
} from './containers/labels.ts';
export {
  containerResources,
  type LinuxNode,
  mayUseSwap,
  overheadResources,
  type ResourceGrants,
  sandboxResources,
} from './containers/linux-resources.ts';
export {
  containerMounts,
  type MountableVolume,
  type MountInputs,
  type SubPath,
} from './containers/mounts.ts';
export { oomScoreAdj } from './containers/oom-score.ts';
export { type PodUsersDeps, podUsers } from './containers/pod-users.ts';
export { resourceField } from './containers/resource-field.ts';
export { restoreContainer, restorePod } from './containers/restored-spec.ts';
export {
  containerSecurityContext,
  type ImageUser,
  imageUser,
  type SecurityInputs,
} from './containers/security-context.ts';
export { appArmorProblem, appArmorProfile, type SeccompSettings } from './containers/security-profiles.ts';
export { type KnownServices, serviceVariables } from './containers/service-variables.ts';
export { specHash } from './containers/spec-hash.ts';
export { noStartNotes, type StartNotes, withUnansweredStart } from './containers/start-notes.ts';
export { memoryVolumeParts, realVolumeParts, type VolumeParts } from './containers/volume-parts.ts';
export { type HookObserver, hookMetrics } from './hooks/hook-metrics.ts';
export { type BegunPreStop, type HookNotes, noHookNotes } from './hooks/hook-notes.ts';
export { type HookRunner, type HookTarget, noHooks } from './hooks/hook-runner.ts';
export { LifecycleHooks, type LifecycleHooksDeps } from './hooks/lifecycle-hooks.ts';
export * from './images/credentials/index.ts';
export * from './images/gc/index.ts';
export {
  type EnsuredImage,
  type ImageFacts,
  type ImageFailureReason,
  ImageManager,
} from './images/image-manager.ts';
export type { PullLimits } from './images/image-pulls.ts';
export * from './images/pull-records/index.ts';
export { type ContainerKill, type KillablePod, type KillPodRequest, PodKiller } from './kill/pod-kill.ts';
export * from './logs/index.ts';
export type { LogFiles, LogHandle, LogHint } from './logs/log-files.ts';
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
} from './logs/log-paths.ts';
export * from './logs/rotation/index.ts';
export type { RotationFiles } from './logs/rotation/rotation-files.ts';
export { resizeDurations, type StartObserver, startMetrics } from './metrics.ts';
export { RuntimeObserver } from './observe.ts';
export { computePodActions } from './plan/compute-pod-actions.ts';
export { CrashBackoff, type CrashBackoffOptions, type RestartDelay } from './plan/crash-backoff.ts';
export { initializedSandbox } from './plan/init-container-actions.ts';
export {
  NodePlanner,
  type NodePlannerDeps,
  type NodePlannerSettings,
} from './plan/node-planner.ts';
export type { PlanContext, ProbeResult } from './plan/plan-context.ts';
export type { ContainerToKill, ContainerToReset, KillReason, PodActions } from './plan/pod-actions.ts';
export type {
  ContainerPlan,
  ContainerRequest,
  PlannedFile,
  PodPlanner,
  SandboxPlan,
} from './plan/pod-planner.ts';
export {
  PodRuntime,
  type PodRuntimeDeps,
  type PodRuntimeSettings,
  type RestartRequest,
} from './pod-runtime.ts';
export { PodStreams, type PodStreamsDeps, type ProcessStreams } from './pod-streams.ts';
export type { SyncPodRequest } from './pod-sync.ts';
export { ReasonCache, type StartOutcome, type WaitingReason } from './reason-cache.ts';
export type { ActuatedResources } from './resize/actuated.ts';
export type { PodLimits, PodLimitsAccess } from './resize/pod-limits.ts';
export { type FileKind, type RuntimeFiles, realRuntimeFiles } from './runtime-files.ts';
export { type ClusterDns, checkResolvConf, type DnsSettings, type PodDns, podDns } from './sandbox/dns.ts';
export { kernelHostname, type PodHostname, podHostname } from './sandbox/hostname.ts';
export { type HostsFileInputs, hostsFile, hostsFilePath } from './sandbox/hosts-file.ts';
export { parseResolvConf, type ResolverConfig } from './sandbox/resolv-conf.ts';
export {
  type FoundClass,
  type HandlerAbilities,
  handlersAsClasses,
  type RuntimeClasses,
  runtimeHandlerOf,
} from './sandbox/runtime-classes.ts';
export { decideSandbox, type SandboxDecision } from './sandbox/sandbox-changed.ts';
export { type PlannedSandboxConfig, type SandboxInputs, sandboxConfig } from './sandbox/sandbox-config.ts';
export { cpuTimesIn, SandboxTurns } from './sandbox/sandbox-turns.ts';
export { type SysctlRules, sysctlProblem } from './sandbox/sysctls.ts';
export { idsOfBlock, UserNamespaces, type UserNamespacesDeps } from './sandbox/user-namespaces.ts';
export type { ActionFailure, KillResult, SyncAction, SyncPodResult } from './sync-result.ts';
