/** The PodResources API for monitoring agents. Loaded at the first request. */
export {
  type GivenResources,
  type PodResourcesDeps,
  podResourcesMetrics,
  servePodResources,
} from './pod-resources-lister.ts';
