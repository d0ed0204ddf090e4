export type { PodEvent, PodJournal, PodStage, PodStep } from './journal.ts';
export type {
  ObservedContainer,
  ObservedContainerState,
  ObservedPod,
  ObservedResources,
  ObservedSandbox,
  ObservedUser,
  RuntimeContainer,
  RuntimeItem,
  RuntimePod,
} from './observed.ts';
export {
  annotations,
  describePod,
  fullNameOf,
  isCriticalPod,
  isMirrorPod,
  isStaticPod,
  isTerminalPhase,
  type Pod,
  type PodFullName,
  type PodMeta,
  type PodSource,
  type PodUid,
  podUid,
  sourceOf,
} from './pod.ts';
