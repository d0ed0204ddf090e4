export { type CreateResourceAllocatorDeps, createResourceAllocator } from './create-resource-allocator.ts';
export { resetStaticPolicies } from './reset-static-policies.ts';
export { runtimePlacement } from './runtime-placements.ts';
