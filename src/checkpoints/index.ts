export { PodNotebook } from './pod-checkpoints.ts';
export { mountPoints, PodDirectories, podsDirOf } from './pod-directories.ts';
export { EarlierPods, type PodStanding } from './restored-pods.ts';
export { shutDownStatus } from './shutdown-status.ts';
