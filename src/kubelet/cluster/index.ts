export { type ClusterClients, ClusterNode, type ClusterNodeOptions } from './cluster-node.ts';
