/** Disk usage of directories. */
export { type DirectoryUsages, DiskWalker } from './disk-walker.ts';
export type { FileCount, FileSystemSpace, Tree, TreeResult, TreeUsage } from './messages.ts';
export { spaceAt, spaceOf } from './space.ts';
