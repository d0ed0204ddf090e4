export { beforeDeadline, isPastDeadline } from './active-deadline.ts';
export {
  allocationOf,
  effectiveAllocation,
  effectiveResources,
  type PodAllocation,
  sameAllocation,
  sameResources,
  withAllocation,
} from './allocation.ts';
export { changeOf, isLocalAnnotation, type PodChange, sameJson } from './equality.ts';
export { allNamed, findNamed } from './find-named.ts';
export { actionPort, actionRequest } from './http-action.ts';
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
  allContainersRun,
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
  claimNameOf,
  containerFieldPath,
  describePod,
  ephemeralContainersOf,
  fullNameOf,
  initContainersOf,
  isCriticalPod,
  isMirrorPod,
  isSidecar,
  isStaticPod,
  isTerminalPhase,
  mayBePodUid,
  newestInstance,
  type Pod,
  type PodFullName,
  type PodMeta,
  type PodSource,
  type PodUid,
  podUid,
  sourceOf,
} from './pod.ts';
export { computeQosClass, heldLimits, isHeldTo, type QosClass, qosClass } from './qos.ts';
export {
  addResources,
  containerSum,
  cpuQuotaUs,
  cpuShares,
  hasPodLevelResources,
  hugePageAmounts,
  hugePageResource,
  hugePageSizeName,
  isHugePages,
  isPodLevelResource,
  isPositive,
  memoryOf,
  milliCpuOf,
  type PodSumOptions,
  podLimits,
  podRequests,
  quotaUsToMilliCpu,
  type ResourceList,
  type ResourceSide,
  readResources,
  sharesToMilliCpu,
} from './resources.ts';
export {
  effectiveRestartPolicy,
  exitRestartsAllContainers,
  hasFinalExit,
  lostExitCode,
  type RestartPolicy,
  restartsAfterExit,
  shouldContainerStart,
  shouldRestartAllContainers,
} from './restart-decision.ts';
export type { FeatureGate, FieldProblem, FieldReason, PodRules } from './rules.ts';
