export { allocateFromProviders } from './admission/allocate-from-providers.ts';
export {
  type Admission,
  type AdmissionFacts,
  type AdmissionObserver,
  type AdmissionOperation,
  type AdmissionStanding,
  admissionMetrics,
  checkStreamUrl,
  chooseVictims,
  declaredFeatures,
  type Evaluation,
  evaluatePod,
  isTolerated,
  matchesNodeSelector,
  nodePortRequested,
  PendingAdmissions,
  PodAdmission,
  type PodAdmissionDeps,
  type PodResourceAllocator,
  type Preemption,
  preemptedEvent,
  preemptedStatus,
  type Rejection,
  type TolerationRules,
  type VictimChoice,
} from './admission/index.ts';
export * from './allocation/index.ts';
export type { Slice, SliceManager } from './cgroups/cgroup-manager.ts';
export {
  CgroupManager,
  type CgroupManagerDeps,
  type CgroupObserver,
  type CgroupOperation,
  cgroupMetrics,
} from './cgroups/cgroup-manager.ts';
export {
  type CgroupDriver,
  type CgroupName,
  cgroupName,
  cgroupPath,
  kubepodsPath,
  parseCgroupPath,
} from './cgroups/cgroup-name.ts';
export type { CgroupLimits, CgroupValues, RuntimePlacement } from './cgroups/cgroup-values.ts';
export { type CgroupUpkeep, type NodeCgroups, nodeCgroups, openCgroups } from './cgroups/node-cgroups.ts';
export { type PidLimits, readPidLimits } from './cgroups/pid-limits.ts';
export {
  type KubepodsWeight,
  kubepodsValues,
  type NodeAmount,
  type PodCgroupSettings,
  podCgroupValues,
} from './cgroups/pod-cgroup-values.ts';
export {
  noPodCgroups,
  type OrphanRules,
  type PodCgroups,
  PodContainerManager,
  type PodContainerManagerDeps,
} from './cgroups/pod-container-manager.ts';
export {
  type EnforcementObserver,
  QosContainerManager,
  type QosContainerManagerDeps,
} from './cgroups/qos-container-manager.ts';
export { enforceReservedCgroups, type ReservedCgroup, reservedCgroups } from './cgroups/reserved-cgroups.ts';
export { type CgroupDriverDeps, runtimeCgroupDriver } from './cgroups/runtime-cgroup-driver.ts';
export {
  hostProcesses,
  type ProcessFacts,
  SystemCgroups,
  type SystemCgroupsDeps,
} from './cgroups/system-cgroups.ts';
export type { RunningContainer } from './cpu/cpu-manager.ts';
export { type DeviceHost, hostDeviceHost } from './devices/device-host.ts';
export { NodeDevices } from './devices/node-devices.ts';
export { PodResourcesServer, type PodResourcesServerDeps } from './devices/pod-resources-server.ts';
export * from './dra/index.ts';
export * from './eviction/index.ts';
export type { ExclusiveResourceSettings } from './exclusive/create-resource-allocator.ts';
export type {
  AllocatedResources,
  ContainerPlacement,
  ExclusiveResources,
} from './exclusive/resource-allocator.ts';
export { allocatableOf } from './machine/allocatable.ts';
export { setupKernelTunables, type TunableFiles } from './machine/kernel-tunables.ts';
export {
  checkMachine,
  type MachineFacts,
  type MachineFiles,
  type MachineRequirements,
  readMachineFacts,
} from './machine/machine-facts.ts';
export {
  checkReservations,
  cpuCount,
  maxPods,
  type Reservations,
  reservedAmount,
  withheldAmount,
} from './machine/reservations.ts';
export * from './oom/index.ts';
export { OwnOomScore, type OwnOomScoreDeps } from './oom/own-oom-score.ts';
export type { AllocationTerms, HintProvider, TopologyHint, TopologyHints } from './topology/index.ts';
