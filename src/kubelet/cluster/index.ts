export { type ClusterClients, ClusterNode, type ClusterNodeOptions } from './cluster-node.ts';
export { type ClusterCopies, clusterCopies } from './kept-copies.ts';
