export { followMirrors } from './follow-mirrors.ts';
export { MirrorPods, type MirrorPodsDeps, mirrorNames } from './mirror-pods.ts';
