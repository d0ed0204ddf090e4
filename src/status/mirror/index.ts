export { followMirrors, MirrorPods, type MirrorPodsDeps, mirrorNames } from './mirror-pods.ts';
