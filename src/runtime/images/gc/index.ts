export { type DiskSpace, type ImageGcDeps, ImageGcManager, type ImageGcPolicy } from './image-gc-manager.ts';
export { ImageLeases } from './image-leases.ts';
