/** What was given to which container, for agents of the node. Loaded with the first of them that asks. */
export { podResourcesMetrics } from './metrics.ts';
export { type GivenResources, type PodResourcesDeps, servePodResources } from './pod-resources-lister.ts';
