export { type AllotterParts, openAllotter } from './create-resource-allocator.ts';
export { leaveStatic } from './reset-static-policies.ts';
export { runtimePlacement } from './runtime-placements.ts';
