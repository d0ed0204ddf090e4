export { parseCpuSet } from '../cpu/cpu-set.ts';
export { leaveStatic } from './leave-static.ts';
export { type AllotterParts, openAllotter } from './open-allotter.ts';
