export { AllocatedPods } from './allocated-pods.ts';
export { AllocationManager, type AllocationManagerDeps } from './allocation-manager.ts';
export { type RequestedResize, type ResizeObserver, type ResizeTrigger, resizeMetrics } from './metrics.ts';
export { PodResizes, type PodResizesDeps } from './pod-resizes.ts';
export { type AllocationFiles, PodResourceFile, type PodResourceFileDeps } from './pod-resource-file.ts';
export { ResizeConditions } from './resize-conditions.ts';
export { type Infeasible, infeasibility, type ResizeLimits } from './resize-feasibility.ts';
