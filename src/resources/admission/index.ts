export { isExtendedResource } from './amounts.ts';
export { declaredFeatures } from './declared-features.ts';
export { nodePortRequested } from './host-ports.ts';
export { type AdmissionFacts, type AdmissionStanding, judgePod } from './judge-pod.ts';
export type { Admission, Allotter, Judgement, Preemption, Refusal } from './judgement.ts';
export { admissionMetrics } from './metrics.ts';
export { matchesNodeSelector } from './node-affinity.ts';
export { PendingAdmissions } from './pending-admissions.ts';
export {
  type AdmissionObserver,
  type AdmissionOperation,
  PodAdmission,
  type PodAdmissionDeps,
} from './pod-admission.ts';
export { chooseVictims, preemptedEvent, preemptedStatus, type VictimChoice } from './preemption.ts';
export { isTolerated, type TolerationRules } from './taints.ts';
