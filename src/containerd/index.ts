export { type Busybox, busyboxImage, busyboxImageName } from './busybox-image.ts';
export { removeTopCgroup } from './cgroups.ts';
export { type CgroupDriver, type ConfigFacts, containerdConfig, type Snapshotter } from './config.ts';
export type { ImageStore } from './image-store.ts';
export type { Probe } from './launch.ts';
export { containerdLayout, type Layout, networkName } from './layout.ts';
export type { TeardownOptions } from './leftover-files.ts';
export { programDirs } from './machine.ts';
export { unmountBelow } from './mounts.ts';
export { type Architecture, buildImage, type ImageSpec, imageArchitecture } from './oci-image.ts';
export { pauseImage, pauseImageName } from './pause-image.ts';
export { pauseProgram } from './pause-program.ts';
export {
  type ContainerdHealth,
  openPrivateContainerd,
  PrivateContainerd,
  type PrivateContainerdOptions,
  type RunningContainerd,
} from './private-containerd.ts';
export {
  findRuntimeSockets,
  type RuntimeSocketOptions,
  type SocketState,
  usualRuntimeSockets,
} from './runtime-socket.ts';
export { type TarEntry, tarArchive } from './tar.ts';
export type { TeardownReport } from './teardown.ts';
