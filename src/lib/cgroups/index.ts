export { type CgroupHost, errnoOf, realCgroupHost } from './host.ts';
export type { KeptFiles } from './kept-files.ts';
export { type CgroupLayout, cgroupMagic, cgroupRoots, detectCgroupLayout } from './layout.ts';
export { type CgroupRemoval, cgroupPids, killCgroup, removeCgroup, removeEmptyCgroup } from './remove.ts';
