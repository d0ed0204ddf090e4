/** What was given to which container, for agents of the node. Loaded with the first of them that asks. */
export {
  type GivenResources,
  type PodResourcesDeps,
  podResourcesMetrics,
  servePodResources,
} from './pod-resources-lister.ts';
