export {
  type Admission,
  type AdmissionFacts,
  type AdmissionObserver,
  type AdmissionOperation,
  type AdmissionStanding,
  type AdmittedPods,
  type Allotter,
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
export { allotPod } from './allot-pod.ts';
export type { Allotments, GivenPlaces, PlacementGrants } from './allotment/allotter.ts';
export type { AllotmentSettings } from './allotment/settings.ts';
export { CgroupManager, type CgroupManagerDeps } from './cgroup-manager.ts';

export {
  type CgroupDriver,
  type CgroupName,
  cgroupName,
  cgroupPath,
  kubepodsPath,
  parseCgroupPath,
} from './cgroup-name.ts';
export type { CgroupValues } from './cgroup-values.ts';
export type { RunningContainer } from './cpu/cpu-manager.ts';
export { type DeviceHost, hostDeviceHost } from './devices/device-host.ts';
export * from './dra/index.ts';
export * from './eviction/index.ts';
export { settleKernelTunables, type TunableFiles } from './kernel-tunables.ts';
export { checkMachine, type MachineDemands } from './machine-checks.ts';
export { type FactFiles, type MachineFacts, readMachineFacts } from './machine-facts.ts';
export { type CgroupObserver, type CgroupOperation, cgroupMetrics } from './metrics.ts';
export {
  checkReservations,
  cpuCount,
  mostPods,
  type Reservations,
  reservedAmount,
  withheldAmount,
} from './node-amounts.ts';
export * from './oom/index.ts';
export { OwnOomScore, type OwnOomScoreDeps } from './own-oom-score.ts';
export { type PidLimits, readPidLimits } from './pid-limits.ts';
export { noPodCgroups, type OrphanRules, type PodCgroups } from './pod-cgroups.ts';
export { PodContainerManager, type PodContainerManagerDeps } from './pod-container-manager.ts';
export {
  type KubepodsWeight,
  kubepodsValues,
  type NodeAmount,
  type PodCgroupSettings,
  podCgroupValues,
} from './pod-values.ts';
export {
  type EnforcementObserver,
  QosContainerManager,
  type QosContainerManagerDeps,
} from './qos-container-manager.ts';
export type { CgroupLimits } from './read-values.ts';
export { enforceReserved, type ReservedCgroup, reservedCgroups } from './reserved-cgroups.ts';
export type { RuntimePlacement } from './runtime-placement.ts';
export type { Slice, SliceKeeper } from './slice-keeper.ts';

export {
  hostProcesses,
  type ProcessFacts,
  SystemCgroups,
  type SystemCgroupsDeps,
} from './system-cgroups.ts';
export type { AllocationTerms, HintProvider, TopologyHint, TopologyHints } from './topology/index.ts';
