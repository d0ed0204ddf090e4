export { CgroupManager, type CgroupManagerDeps } from './cgroup-manager.ts';
export {
  minShares,
  quotaUsToMilliCpu,
  sharesToMilliCpu,
  sharesToWeight,
  weightToShares,
} from './cgroup-math.ts';
export {
  type CgroupDriver,
  type CgroupName,
  cgroupName,
  cgroupPath,
  parseCgroupPath,
} from './cgroup-name.ts';
export type { CgroupValues } from './cgroup-values.ts';
export { OwnOomScore, type OwnOomScoreDeps } from './own-oom-score.ts';
export {
  type OrphanRules,
  PodContainerManager,
  type PodContainerManagerDeps,
} from './pod-container-manager.ts';
export {
  kubepodsValues,
  type NodeAmount,
  type PodCgroupSettings,
  podCgroupValues,
} from './pod-values.ts';
export { QosContainerManager, type QosContainerManagerDeps } from './qos-container-manager.ts';
