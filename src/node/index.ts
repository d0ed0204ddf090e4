/** Maintains the Node object: registration, status, addresses and lease. */
export type { AddressFacts } from './addresses.ts';
export { hostIps, PolledAddresses, type PolledAddressesOptions } from './addresses.ts';
export { computeNode } from './compute-node.ts';
export { CsiNodePublisher } from './csi-node.ts';
export {
  clusterLoopbackRules,
  HostFirewall,
  type HostFirewallDeps,
  homeLoopbackRules,
  type LoopbackRules,
  type PacketFilter,
  removeHomeLoopbackRules,
} from './host-firewall.ts';
export { NodeImages } from './images.ts';
export type {
  AddressProvider,
  DeviceCapacity,
  HeartbeatConnections,
  LocalAddress,
  MachineCapacity,
  NodeEventInput,
  NodeHealth,
  NodeImageFacts,
  NodeMachineInfo,
  NodePressure,
  NodeRecorder,
  NodeResources,
  NodeRuntime,
  NodeVolumes,
  RuntimeFacts,
  RuntimeHandler,
} from './inputs.ts';
export { type Lease, NodeLease, type NodeLeaseDeps } from './lease.ts';
export { ListeningPorts } from './listening-ports.ts';
export { NodeController, type NodeControllerDeps } from './node-controller.ts';
export { FactReader, type FactSources } from './node-facts.ts';
export { initialNode } from './node-object.ts';
export { type NodeSource, NodeView } from './node-view.ts';
export { type AfterDeletion, checkNodeSettings, type NodeSettings, nodeNameOf } from './settings.ts';
export { diskBytes, goArchitecture, hostNodeMachine } from './system-info.ts';
