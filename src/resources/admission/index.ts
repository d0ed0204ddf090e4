export { isExtendedResource } from './amounts.ts';
export { declaredFeatures } from './declared-features.ts';
export { type AdmissionFacts, type AdmissionStanding, judgePod } from './judge-pod.ts';
export type { Admission, Allotter, Judgement, Preemption, Refusal } from './judgement.ts';
export { admissionMetrics } from './metrics.ts';
export { matchesNodeSelector } from './node-affinity.ts';
export {
  type AdmissionObserver,
  type AdmissionOperation,
  type AdmittedPods,
  PodAdmitter,
  type PodAdmitterDeps,
} from './pod-admitter.ts';
export { chooseVictims, preempted, type VictimChoice } from './preemption.ts';
export { isTolerated, type TolerationRules } from './taints.ts';
