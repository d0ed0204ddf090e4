export { type ContainerInputs, containerConfig, type DeviceGrants } from './containers/container-config.ts';
export { ContainerDeletor, type Surplus } from './containers/container-deletor.ts';
export { ContainerGc, type GcPods, type GcPolicy, type GcScope } from './containers/container-gc.ts';
export {
  type ReportedResources,
  readContainerResources,
  updateContainerCpuset,
} from './containers/container-resources.ts';
export {
  type DownwardAddresses,
  formatMap,
  orderPodIps,
  podField,
  resourceField,
} from './containers/downward-api.ts';
export {
  containerEnvironment,
  type EnvironmentInputs,
  expandProbeCommand,
  type ObjectLookup,
  type Variable,
} from './containers/environment.ts';
export { ExpansionBudget } from './containers/expansion.ts';
export { GarbageCollector } from './containers/garbage-collector.ts';
export {
  type AnnotatedContainer,
  containerAnnotations,
  containerLabels,
  type LabelledOwner,
  labels,
  readContainerAnnotations,
  readOwner,
  restoreContainer,
  restorePod,
  sandboxLabels,
} from './containers/labels.ts';
export {
  containerResources,
  type LinuxNode,
  mayUseSwap,
  oomScoreAdj,
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
export { PodStreams, type PodStreamsDeps, type ProcessStreams } from './containers/pod-streams.ts';
export { type FileKind, type RuntimeFiles, realRuntimeFiles } from './containers/runtime-files.ts';
export {
  appArmorProblem,
  containerSecurityContext,
  type ImageUser,
  imageUser,
  type SeccompSettings,
  type SecurityInputs,
} from './containers/security-context.ts';
export { type KnownServices, serviceVariables } from './containers/service-variables.ts';
export { specHash } from './containers/spec-hash.ts';
export {
  noStartCheckpoint,
  type StartCheckpoint,
  withInterruptedStart,
} from './containers/start-checkpoint.ts';
export { hostSubPaths, type SubPaths } from './containers/subpaths.ts';
export { noAbilities, type RuntimeAbilities } from './health/runtime-abilities.ts';
export {
  checkRuntime,
  type RuntimeProblems,
  RuntimeState,
  type RuntimeWatch,
  watchRuntime,
  withHints,
} from './health/runtime-state.ts';
export {
  type HookCheckpoint,
  type HookObserver,
  type HookRunner,
  type HookTarget,
  hookMetrics,
  LifecycleHooks,
  type LifecycleHooksDeps,
  noHookCheckpoint,
  type StartedPreStop,
} from './hooks/lifecycle-hooks.ts';
export {
  type DockerConfig,
  NodeDockerConfig,
  type NodeDockerConfigDeps,
  parseDockerCfg,
  parseDockerConfigJson,
  type RegistryLogin,
} from './images/credentials/docker-config.ts';
export {
  type PluginCommand,
  type PluginOutput,
  processPlugins,
  type RunPlugin,
} from './images/credentials/exec-plugin.ts';
export {
  type CredentialProvider,
  type CredentialSource,
  Keyring,
  type PullCredential,
} from './images/credentials/keyring.ts';
export {
  noServiceAccounts,
  type PluginObserver,
  PluginProvider,
  type PluginProviderDeps,
  type PluginSpec,
  type PodTokenRequest,
  pluginMetrics,
  type ServiceAccountInfo,
  type ServiceAccounts,
} from './images/credentials/plugin-provider.ts';
export {
  noPullSecrets,
  PodCredentials,
  type PodCredentialsDeps,
  type PullSecrets,
} from './images/credentials/pod-credentials.ts';
export { createImageGc, ImageCollector } from './images/gc/image-collector.ts';
export {
  type DiskSpace,
  type ImageGcDeps,
  ImageGcManager,
  type ImageGcPolicy,
} from './images/gc/image-gc-manager.ts';
export { ImageLeases } from './images/gc/image-leases.ts';
export { type CredentialHost, ImageAccess } from './images/image-access.ts';
export {
  type EnsuredImage,
  type ImageFacts,
  type ImageFailureReason,
  ImageManager,
} from './images/image-manager.ts';
export type { PullLimits } from './images/image-pulls.ts';
export type { VerificationPolicy } from './images/pull-records/pull-records.ts';
export { type PullEnd, PullRecords, type PullRecordsDeps } from './images/pull-records/pull-records.ts';
export { RecordFiles, type RecordFilesDeps } from './images/pull-records/record-files.ts';
export { type ContainerKill, type KillablePod, type KillPodRequest, PodKiller } from './kill/pod-killer.ts';
export {
  type ContainerLogRequest,
  ContainerLogs,
  type ContainerLogsDeps,
  LogFollowers,
  type LogInstanceSelector,
  type OpenedLog,
  type SelectedLogInstance,
  selectLogInstance,
} from './logs/container-logs.ts';
export type { LogView } from './logs/log-decoder.ts';
export type { LogFiles, LogHandle, LogHint } from './logs/log-files.ts';

export { realLogFiles } from './logs/log-files.ts';
export type { LogStream } from './logs/log-line.ts';
export { type LogTime, parseLogTime } from './logs/log-line.ts';
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
export {
  ContainerLogManager,
  type ContainerLogManagerDeps,
  type ContainerLogPolicy,
  type LoggingContainer,
} from './logs/rotation/container-log-manager.ts';
export type { LogFile, RotationFiles } from './logs/rotation/rotation-files.ts';
export { realRotationFiles } from './logs/rotation/rotation-files.ts';
export { resizeDurations, type StartObserver, startMetrics } from './metrics.ts';
export { AnnouncedExits } from './plan/announced-exits.ts';
export { computePodActions } from './plan/compute-pod-actions.ts';
export { CrashBackoff, type CrashBackoffOptions, type RestartDelay } from './plan/crash-backoff.ts';
export { initializedSandbox } from './plan/init-container-actions.ts';
export {
  NodePlanner,
  type NodePlannerDeps,
  type NodePlannerSettings,
} from './plan/node-planner.ts';
export type {
  ContainerToKill,
  ContainerToReset,
  KillReason,
  PlanContext,
  PodActions,
  ProbeResult,
} from './plan/pod-actions.ts';
export type {
  ContainerPlan,
  ContainerRequest,
  PlannedFile,
  PodPlanner,
  SandboxPlan,
} from './plan/pod-planner.ts';
export type { ActuatedResources } from './resize/actuated-resources.ts';
export type { PodLimits, PodLimitsAccess } from './resize/pod-limits.ts';
export {
  type RestartRequest,
  RuntimeManager,
  type RuntimeManagerDeps,
  type RuntimeManagerSettings,
} from './runtime-manager.ts';
export {
  type ClusterDns,
  checkResolvConf,
  type DnsSettings,
  type PodDns,
  parseResolvConf,
  podDns,
  type ResolverConfig,
} from './sandbox/dns.ts';
export {
  type HostsFileInputs,
  hostsFile,
  hostsFilePath,
  kernelHostname,
  type PodHostname,
  podHostname,
} from './sandbox/hostname.ts';
export {
  type FoundClass,
  type HandlerFeatures,
  handlersAsClasses,
  type RuntimeClasses,
  runtimeHandlerOf,
} from './sandbox/runtime-classes.ts';
export { type PlannedSandboxConfig, type SandboxInputs, sandboxConfig } from './sandbox/sandbox-config.ts';
export { decideSandbox, type SandboxDecision } from './sandbox/sandbox-decision.ts';
export { parseCpuTimes, SandboxLimiter } from './sandbox/sandbox-limiter.ts';
export { type SysctlRules, sysctlProblem } from './sandbox/sysctls.ts';
export {
  type ForeignIds,
  idsPerBlock,
  type PodUsersDeps,
  podUsers,
  UserNamespaces,
  type UserNamespacesDeps,
} from './sandbox/user-namespaces.ts';
export {
  removeSandbox,
  type SelfCheckDeps,
  type SelfCheckPlan,
  selfCheck,
  selfCheckLabel,
} from './self-check.ts';
export type { SyncPodRequest } from './sync/pod-sync.ts';
export { ReasonCache, type StartOutcome, type WaitingReason } from './sync/reason-cache.ts';
export { RuntimeObserver } from './sync/runtime-observer.ts';
export type { ActionFailure, KillResult, SyncAction, SyncPodResult } from './sync/sync-result.ts';
