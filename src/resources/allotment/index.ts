export { parseCpuSet } from '../cpu/cpu-set.ts';
export { type AllotterParts, openAllotter } from './open-allotter.ts';
