export { parseCpuSet } from '../cpu/cpu-set.ts';
export { type AllotterParts, openAllotter } from './create-resource-allocator.ts';
export { leaveStatic } from './reset-static-policies.ts';
