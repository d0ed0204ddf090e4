export { allotPod } from './admission/allocate-exclusive.ts';
export {
  type Admission,
  type AdmissionFacts,
  type AdmissionObserver,
  type AdmissionOperation,
  type AdmissionStanding,
  type Allotter,
  admissionMetrics,
  chooseVictims,
  declaredFeatures,
  isTolerated,
  type Judgement,
  judgePod,
  matchesNodeSelector,
  PendingAdmissions,
  PodAdmission,
  type PodAdmissionDeps,
  type Preemption,
  preemptedEvent,
  preemptedStatus,
  type Refusal,
  type TolerationRules,
  type VictimChoice,
} from './admission/index.ts';
export * from './allocation/index.ts';
export { CgroupManager, type CgroupManagerDeps } from './cgroups/cgroup-manager.ts';
export {
  type CgroupDriver,
  type CgroupName,
  cgroupName,
  cgroupPath,
  kubepodsPath,
  parseCgroupPath,
} from './cgroups/cgroup-name.ts';
export type { CgroupValues } from './cgroups/cgroup-values.ts';
export { type PidLimits, readPidLimits } from './cgroups/pid-limits.ts';
export { noPodCgroups, type OrphanRules, type PodCgroups } from './cgroups/pod-cgroups.ts';
export { PodContainerManager, type PodContainerManagerDeps } from './cgroups/pod-container-manager.ts';
export {
  type KubepodsWeight,
  kubepodsValues,
  type NodeAmount,
  type PodCgroupSettings,
  podCgroupValues,
} from './cgroups/pod-values.ts';
export {
  type EnforcementObserver,
  QosContainerManager,
  type QosContainerManagerDeps,
} from './cgroups/qos-container-manager.ts';
export type { CgroupLimits } from './cgroups/read-values.ts';
export { enforceReserved, type ReservedCgroup, reservedCgroups } from './cgroups/reserved-cgroups.ts';
export type { RuntimePlacement } from './cgroups/runtime-placement.ts';
export type { Slice, SliceKeeper } from './cgroups/slice-keeper.ts';
export {
  hostProcesses,
  type ProcessFacts,
  SystemCgroups,
  type SystemCgroupsDeps,
} from './cgroups/system-cgroups.ts';
export type { RunningContainer } from './cpu/cpu-manager.ts';
export { type DeviceHost, hostDeviceHost } from './devices/device-host.ts';
export * from './dra/index.ts';
export * from './eviction/index.ts';
export type { Allotments, GivenPlaces, PlacementGrants } from './exclusive/allotter.ts';
export type { AllotmentSettings } from './exclusive/settings.ts';
export { settleKernelTunables, type TunableFiles } from './machine/kernel-tunables.ts';
export { checkMachine, type MachineDemands } from './machine/machine-checks.ts';
export { type FactFiles, type MachineFacts, readMachineFacts } from './machine/machine-facts.ts';
export {
  checkReservations,
  cpuCount,
  mostPods,
  type Reservations,
  reservedAmount,
  withheldAmount,
} from './machine/node-amounts.ts';
export { type CgroupObserver, type CgroupOperation, cgroupMetrics } from './metrics.ts';
export * from './oom/index.ts';
export { OwnOomScore, type OwnOomScoreDeps } from './oom/own-oom-score.ts';
export type { AllocationTerms, HintProvider, TopologyHint, TopologyHints } from './topology/index.ts';
