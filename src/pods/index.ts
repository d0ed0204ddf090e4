export {
  allocationOf,
  type PodAllocation,
  sameAllocation,
  sameResources,
  withAllocation,
} from './allocation.ts';
export { claimNameOf } from './claim-names.ts';
export {
  containerFieldPath,
  ephemeralContainersOf,
  initContainersOf,
  isSidecar,
  newestInstance,
} from './containers.ts';
export { cpuQuotaUs, cpuShares, quotaUsToMilliCpu, sharesToMilliCpu } from './cpu-time.ts';
export { effectiveAllocation, effectiveResources } from './effective-resources.ts';
export { changeOf, isLocalAnnotation, type PodChange, sameJson } from './equality.ts';
export { heldLimits, isHeldTo } from './held-limits.ts';
export { actionPort, actionRequest } from './http-action.ts';
export { hugePageAmounts, hugePageResource, hugePageSizeName } from './huge-pages.ts';
export { bareImageName, type ImageName, type PullPolicy, pullPolicyOf, readImageName } from './image-name.ts';
export type { PodEvent, PodJournal, PodStage, PodStep } from './journal.ts';
export {
  isMirrorPodOf,
  PodManager,
  type PodsAndMirrors,
  type PodWithMirror,
  type UidTranslations,
} from './manager.ts';
export {
  mayRun,
  type ObservedContainer,
  type ObservedContainerState,
  type ObservedPod,
  type ObservedResources,
  type ObservedSandbox,
  type ObservedUser,
  type RuntimeContainer,
  type RuntimeItem,
  type RuntimePod,
} from './observed.ts';
export {
  annotations,
  describePod,
  fullNameOf,
  isCriticalPod,
  isMirrorPod,
  isStaticPod,
  isTerminalPhase,
  mayBePodUid,
  type Pod,
  type PodFullName,
  type PodMeta,
  type PodSource,
  type PodUid,
  parseFullName,
  podUid,
  sourceOf,
} from './pod.ts';
export { computeQosClass, type QosClass, qosClass } from './qos.ts';
export {
  addResources,
  containerSum,
  hasPodLevelResources,
  isHugePages,
  isPodLevelResource,
  isPositive,
  memoryOf,
  milliCpuOf,
  type PodSumOptions,
  podLimits,
  podRequests,
  type ResourceList,
  type ResourceSide,
  readResources,
} from './resources.ts';
export {
  effectiveRestartPolicy,
  exitRestartsAllContainers,
  type RestartPolicy,
  restartsAfterExit,
  shouldContainerStart,
  shouldRestartAllContainers,
} from './restart-decision.ts';
export type { FeatureGate, FieldProblem, FieldReason, PodRules } from './rules.ts';
