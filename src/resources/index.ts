export {
  type Admission,
  type AdmissionFacts,
  type AdmissionObserver,
  type AdmissionOperation,
  type AdmissionStanding,
  type AdmittedPods,
  admissionMetrics,
  chooseVictims,
  declaredFeatures,
  isTolerated,
  type Judgement,
  judgePod,
  matchesNodeSelector,
  PodAdmitter,
  type PodAdmitterDeps,
  type Preemption,
  preempted,
  type Refusal,
  type TolerationRules,
  type VictimChoice,
} from './admission/index.ts';
export * from './allocation/index.ts';
export { CgroupManager, type CgroupManagerDeps } from './cgroup-manager.ts';
export { minShares, sharesToWeight, weightToShares } from './cgroup-math.ts';
export {
  type CgroupDriver,
  type CgroupName,
  cgroupName,
  cgroupPath,
  parseCgroupPath,
} from './cgroup-name.ts';
export type { CgroupValues } from './cgroup-values.ts';
export { checkMachine, type MachineDemands } from './machine-checks.ts';
export { type FactFiles, type MachineFacts, readMachineFacts } from './machine-facts.ts';
export { type CgroupObserver, type CgroupOperation, cgroupMetrics } from './metrics.ts';
export { cpuCount, type Reservations, reservedAmount } from './node-amounts.ts';
export { OwnOomScore, type OwnOomScoreDeps } from './own-oom-score.ts';
export { noPodCgroups, type OrphanRules, type PodCgroups } from './pod-cgroups.ts';
export { PodContainerManager, type PodContainerManagerDeps } from './pod-container-manager.ts';
export {
  kubepodsValues,
  type NodeAmount,
  type PodCgroupSettings,
  podCgroupValues,
} from './pod-values.ts';
export { QosContainerManager, type QosContainerManagerDeps } from './qos-container-manager.ts';
export type { CgroupLimits } from './read-values.ts';
export * from './stats/index.ts';
