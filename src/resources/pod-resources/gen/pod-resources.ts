// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServiceType, serviceType, type Unary } from '../../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../../protocols/protobuf/index.ts';

export interface ListPodResourcesRequest {
}
export interface ListPodResourcesResponse {
  readonly podResources: readonly PodResources[];
}
export interface AllocatableResourcesRequest {
}
export interface AllocatableResourcesResponse {
  readonly devices: readonly ContainerDevices[];
  readonly cpuIds: readonly bigint[];
  readonly memory: readonly ContainerMemory[];
}
export interface GetPodResourcesRequest {
  readonly podName: string;
  readonly podNamespace: string;
}
export interface GetPodResourcesResponse {
  readonly podResources: PodResources | undefined;
}
export interface PodResources {
  readonly name: string;
  readonly namespace: string;
  readonly containers: readonly ContainerResources[];
}
export interface ContainerResources {
  readonly name: string;
  readonly devices: readonly ContainerDevices[];
  readonly cpuIds: readonly bigint[];
  readonly memory: readonly ContainerMemory[];
  readonly dynamicResources: readonly DynamicResource[];
}
export interface ContainerMemory {
  readonly memoryType: string;
  readonly size: bigint;
  readonly topology: TopologyInfo | undefined;
}
export interface ContainerDevices {
  readonly resourceName: string;
  readonly deviceIds: readonly string[];
  readonly topology: TopologyInfo | undefined;
}
export interface TopologyInfo {
  readonly nodes: readonly NUMANode[];
}
export interface NUMANode {
  readonly ID: bigint;
}
export interface DynamicResource {
  readonly claimName: string;
  readonly claimNamespace: string;
  readonly claimResources: readonly ClaimResource[];
}
export interface ClaimResource {
  readonly cdiDevices: readonly CDIDevice[];
  readonly driverName: string;
  readonly poolName: string;
  readonly deviceName: string;
  readonly shareId: string | undefined;
}
export interface CDIDevice {
  readonly name: string;
}
const schema = new Schema(`
message ListPodResourcesRequest
message ListPodResourcesResponse|1 podResources repeated PodResources
message AllocatableResourcesRequest
message AllocatableResourcesResponse|1 devices repeated ContainerDevices|2 cpuIds repeated int64|3 memory repeated ContainerMemory
message GetPodResourcesRequest|1 podName string|2 podNamespace string
message GetPodResourcesResponse|1 podResources PodResources
message PodResources|1 name string|2 namespace string|3 containers repeated ContainerResources
message ContainerResources|1 name string|2 devices repeated ContainerDevices|3 cpuIds repeated int64|4 memory repeated ContainerMemory|5 dynamicResources repeated DynamicResource
message ContainerMemory|1 memoryType string|2 size uint64|3 topology TopologyInfo
message ContainerDevices|1 resourceName string|2 deviceIds repeated string|3 topology TopologyInfo
message TopologyInfo|1 nodes repeated NUMANode
message NUMANode|1 ID int64
message DynamicResource|2 claimName string|3 claimNamespace string|4 claimResources repeated ClaimResource
message ClaimResource|1 cdiDevices repeated CDIDevice|2 driverName string|3 poolName string|4 deviceName string|5 shareId optional string
message CDIDevice|1 name string
`);

export const ListPodResourcesRequest: MessageType<ListPodResourcesRequest> = schema.message('ListPodResourcesRequest');
export const ListPodResourcesResponse: MessageType<ListPodResourcesResponse> = schema.message('ListPodResourcesResponse');
export const AllocatableResourcesRequest: MessageType<AllocatableResourcesRequest> = schema.message('AllocatableResourcesRequest');
export const AllocatableResourcesResponse: MessageType<AllocatableResourcesResponse> = schema.message('AllocatableResourcesResponse');
export const GetPodResourcesRequest: MessageType<GetPodResourcesRequest> = schema.message('GetPodResourcesRequest');
export const GetPodResourcesResponse: MessageType<GetPodResourcesResponse> = schema.message('GetPodResourcesResponse');
export const PodResources: MessageType<PodResources> = schema.message('PodResources');
export const ContainerResources: MessageType<ContainerResources> = schema.message('ContainerResources');
export const ContainerMemory: MessageType<ContainerMemory> = schema.message('ContainerMemory');
export const ContainerDevices: MessageType<ContainerDevices> = schema.message('ContainerDevices');
export const TopologyInfo: MessageType<TopologyInfo> = schema.message('TopologyInfo');
export const NUMANode: MessageType<NUMANode> = schema.message('NUMANode');
export const DynamicResource: MessageType<DynamicResource> = schema.message('DynamicResource');
export const ClaimResource: MessageType<ClaimResource> = schema.message('ClaimResource');
export const CDIDevice: MessageType<CDIDevice> = schema.message('CDIDevice');

export interface PodResourcesListerMethods {
  readonly list: Unary<ListPodResourcesRequest, ListPodResourcesResponse>;
  readonly getAllocatableResources: Unary<AllocatableResourcesRequest, AllocatableResourcesResponse>;
  readonly get: Unary<GetPodResourcesRequest, GetPodResourcesResponse>;
}

export const PodResourcesLister: ServiceType<PodResourcesListerMethods> = serviceType<PodResourcesListerMethods>('v1.PodResourcesLister', {
  list: { name: 'List', kind: 'unary', request: ListPodResourcesRequest, response: ListPodResourcesResponse },
  getAllocatableResources: { name: 'GetAllocatableResources', kind: 'unary', request: AllocatableResourcesRequest, response: AllocatableResourcesResponse },
  get: { name: 'Get', kind: 'unary', request: GetPodResourcesRequest, response: GetPodResourcesResponse },
});
