export type { BlockDevices } from './block-devices.ts';
export { BlockVolumes } from './block-volumes.ts';
export { type BoundVolume, isBoundVolume } from './bound-volume.ts';
export type { ClaimProblem } from './claim-problem.ts';
export {
  type BoundNotes,
  ClaimVolumes,
  type ClaimVolumesDeps,
  isClaimed,
  type VolumeEventTeller,
} from './claim-volumes.ts';
export type { CsiApi } from './csi/csi-api.ts';
export { isPastLimit } from './csi/csi-attach.ts';
export { CsiDrivers } from './csi/csi-drivers.ts';
export { csiMetrics } from './csi/csi-metrics.ts';
export { CsiNodeUpdates } from './csi/csi-node-updates.ts';
export type { SelinuxFacts } from './csi/csi-selinux.ts';
export type { CsiSpace } from './csi/csi-space.ts';
export { CsiVolumes } from './csi/csi-volumes.ts';
export { isOfDriver } from './csi/in-tree-volumes.ts';
export type { DirectoryQuotas } from './directory-quotas.ts';
export { DiskEmptyDirs, type LimitDirectory } from './disk-empty-dirs.ts';
export type { DiskContent, DiskMount, Disks } from './disks.ts';
export type { DownwardValues } from './downward-payload.ts';
export { Expansions } from './expansions.ts';
export { GroupNews } from './group-news.ts';
export { HostBlockDevices } from './host-block-devices.ts';
export { HostDirectoryQuotas } from './host-directory-quotas.ts';
export { HostDisks } from './host-disks.ts';
export { HostNetworkMounts } from './host-network-mounts.ts';
export { prepareHostPath } from './host-path.ts';
export { HostVolumeFiles } from './host-volume-files.ts';
export { inTurns } from './in-turns.ts';
export { LocalDisks } from './local-disks.ts';
export { LocalVolumes, type LocalVolumesDeps } from './local-volumes.ts';
export { EmptyDirQuotas } from './manager/empty-dir-quotas.ts';
export { Renewals } from './manager/renewals.ts';
export { PlainVolumes } from './manager/volume-manager.ts';
export { VolumeMetrics, type VolumeSpaceAt, volumeSpace } from './manager/volume-space.ts';
export { MemoryEmptyDirs, type MemoryEmptyDirsDeps } from './memory-empty-dirs.ts';
export type { NetworkMount, NetworkMounts, Unmounting } from './network-mounts.ts';
export { NfsVolumes } from './nfs-volumes.ts';
export { unusable } from './payload.ts';
export {
  type PayloadVolume,
  PayloadVolumes,
  type PayloadVolumesDeps,
  type VolumeProblem,
} from './payload-volumes.ts';
export { blocked } from './remove-volumes.ts';
export type { GroupAccess, MountKind, VolumeFileKind, VolumeFiles, VolumeSpace } from './volume-files.ts';
export {
  localPlugin,
  reconstructionMetrics,
  type StorageObserver,
  storageMetrics,
  timed,
  type VolumePlugin,
} from './volume-metrics.ts';
export { usedVolumes } from './volume-users.ts';
