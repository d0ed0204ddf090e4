export { isExtendedResource } from './amounts.ts';
export { declaredFeatures } from './declared-features.ts';
export { type AdmissionFacts, type AdmissionStanding, evaluatePod } from './evaluate-pod.ts';
export type { Admission, Evaluation, PodResourceAllocator, Preemption, Rejection } from './evaluation.ts';
export { checkStreamUrl, nodePortRequested } from './host-ports.ts';
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
