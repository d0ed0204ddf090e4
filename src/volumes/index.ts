export type { BlockDevices } from './block/block-volumes.ts';
export { BlockVolumes } from './block/block-volumes.ts';
export { HostBlockDevices } from './block/host-block-devices.ts';
export type { ClaimProblem } from './claims/bound-volume.ts';
export { type BoundVolume, isBoundVolume } from './claims/bound-volume.ts';
export {
  type BoundVolumeRecords,
  ClaimVolumes,
  type ClaimVolumesDeps,
  isClaimed,
  type ReportVolumeEvent,
} from './claims/claim-volumes.ts';
export { Expansions } from './claims/expansions.ts';
export type { CsiApi } from './csi/csi-attach.ts';
export { type CsiClusterLink, csiApi, isPastLimit } from './csi/csi-attach.ts';
export { CsiDrivers, csiMetrics } from './csi/csi-drivers.ts';
export { CsiNodeUpdates } from './csi/csi-node-updates.ts';
export type { SelinuxFacts } from './csi/csi-selinux.ts';
export type { CsiSpace } from './csi/csi-space.ts';
export { CsiVolumes, type CsiVolumesDeps } from './csi/csi-volumes.ts';
export { isOfDriver } from './csi/in-tree-volumes.ts';
export { DiskEmptyDirs, type LimitDirectory } from './emptydir/disk-empty-dirs.ts';
export type { DirectoryQuotas } from './emptydir/empty-dir-quotas.ts';
export { EmptyDirQuotas } from './emptydir/empty-dir-quotas.ts';
export { HostDirectoryQuotas } from './emptydir/host-directory-quotas.ts';
export { MemoryEmptyDirs, type MemoryEmptyDirsDeps } from './emptydir/memory-empty-dirs.ts';
export { HostVolumeFiles } from './files/host-volume-files.ts';
export { removalBlocked } from './files/remove-volumes.ts';
export type {
  GroupAccess,
  MountKind,
  VolumeFileKind,
  VolumeFiles,
  VolumeSpace,
} from './files/volume-files.ts';
export { prepareHostPath } from './hostpath/host-path.ts';
export type { DiskContent, DiskMount, Disks } from './local/format-and-mount.ts';
export { HostDisks } from './local/host-disks.ts';
export { LocalDisks } from './local/local-disks.ts';
export { LocalVolumes, type LocalVolumesDeps } from './local/local-volumes.ts';
export { RefreshRetries } from './manager/mount-attempts.ts';
export { VolumeManager } from './manager/volume-manager.ts';
export {
  localPlugin,
  reconstructionMetrics,
  type StorageObserver,
  storageMetrics,
  timed,
  type VolumePlugin,
} from './manager/volume-metrics.ts';
export { mapConcurrently } from './manager/volume-operations.ts';
export { usedVolumes } from './manager/volume-paths.ts';
export { VolumeMetrics, type VolumeSpaceAt, volumeSpace } from './manager/volume-space.ts';
export { HostNetworkMounts } from './nfs/host-network-mounts.ts';
export type { NetworkMount, NetworkMounts, Unmounting } from './nfs/nfs-volumes.ts';
export { NfsVolumes } from './nfs/nfs-volumes.ts';
export { OwnershipProgress } from './ownership/volume-ownership.ts';
export type { DownwardValues } from './projected/downward-payload.ts';
export { unusable } from './projected/payload.ts';
export {
  type PayloadVolume,
  PayloadVolumes,
  type PayloadVolumesDeps,
  type VolumeProblem,
} from './projected/payload-volumes.ts';
