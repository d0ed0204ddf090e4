export { PodCheckpoints } from './pod-checkpoints.ts';
export { mountPoints, PodDirectories, podsDirOf } from './pod-directories.ts';
export { type PodStanding, RestoredPods } from './restored-pods.ts';
export { shutDownStatus } from './shutdown-status.ts';
