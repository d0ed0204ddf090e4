export { MirrorPods, type MirrorPodsDeps, mirrorNames } from './mirror-pods.ts';
