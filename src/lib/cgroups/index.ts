export type { DirectoryFiles } from './host.ts';
export { type CgroupHost, realCgroupHost } from './host.ts';
export { type CgroupLayout, cgroupMagic, cgroupRoots, detectCgroupLayout } from './layout.ts';
export { type CgroupRemoval, cgroupPids, killCgroup, removeCgroup, removeEmptyCgroup } from './remove.ts';
