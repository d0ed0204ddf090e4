export type { DownwardValues } from './downward-payload.ts';
export { HostVolumeFiles } from './host-volume-files.ts';
export { MemoryEmptyDirs, type MemoryEmptyDirsDeps } from './memory-empty-dirs.ts';
export { MemoryVolumeFiles } from './memory-volume-files.ts';
export {
  type PayloadVolume,
  PayloadVolumes,
  type PayloadVolumesDeps,
  type VolumeProblem,
} from './payload-volumes.ts';
export type { MountKind, VolumeFileKind, VolumeFiles } from './volume-files.ts';
