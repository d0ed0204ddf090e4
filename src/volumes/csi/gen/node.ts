// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServiceType, serviceType, type Unary } from '../../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../../protocols/protobuf/index.ts';

export type AccessModeKind = 'UNKNOWN' | 'SINGLE_NODE_WRITER' | 'SINGLE_NODE_READER_ONLY' | 'MULTI_NODE_READER_ONLY' | 'MULTI_NODE_SINGLE_WRITER' | 'MULTI_NODE_MULTI_WRITER' | 'SINGLE_NODE_SINGLE_WRITER' | 'SINGLE_NODE_MULTI_WRITER' | 'UNRECOGNIZED';
export type UsageUnit = 'UNKNOWN' | 'BYTES' | 'INODES' | 'UNRECOGNIZED';
export type NodeCapability = 'NOTHING' | 'STAGE_UNSTAGE_VOLUME' | 'GET_VOLUME_STATS' | 'EXPAND_VOLUME' | 'VOLUME_CONDITION' | 'SINGLE_NODE_MULTI_WRITER' | 'VOLUME_MOUNT_GROUP' | 'UNRECOGNIZED';
export interface NodeStageVolumeRequest {
  readonly volumeId: string;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly stagingTargetPath: string;
  readonly volumeCapability: VolumeCapability | undefined;
  readonly secrets: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
}
export interface NodeStageVolumeResponse {
}
export interface NodeUnstageVolumeRequest {
  readonly volumeId: string;
  readonly stagingTargetPath: string;
}
export interface NodeUnstageVolumeResponse {
}
export interface NodePublishVolumeRequest {
  readonly volumeId: string;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly stagingTargetPath: string;
  readonly targetPath: string;
  readonly volumeCapability: VolumeCapability | undefined;
  readonly readonly: boolean;
  readonly secrets: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
}
export interface NodePublishVolumeResponse {
}
export interface NodeUnpublishVolumeRequest {
  readonly volumeId: string;
  readonly targetPath: string;
}
export interface NodeUnpublishVolumeResponse {
}
export interface VolumeCapability {
  readonly block: BlockVolume | undefined;
  readonly mount: MountVolume | undefined;
  readonly accessMode: AccessMode | undefined;
}
export interface BlockVolume {
}
export interface MountVolume {
  readonly fsType: string;
  readonly mountFlags: readonly string[];
  readonly volumeMountGroup: string;
}
export interface AccessMode {
  readonly mode: AccessModeKind;
}
export interface NodeGetVolumeStatsRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly stagingTargetPath: string;
}
export interface NodeGetVolumeStatsResponse {
  readonly usage: readonly VolumeUsage[];
  readonly volumeCondition: VolumeCondition | undefined;
}
export interface VolumeUsage {
  readonly available: bigint;
  readonly total: bigint;
  readonly used: bigint;
  readonly unit: UsageUnit;
}
export interface VolumeCondition {
  readonly abnormal: boolean;
  readonly message: string;
}
export interface NodeExpandVolumeRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly capacityRange: CapacityRange | undefined;
  readonly stagingTargetPath: string;
  readonly volumeCapability: VolumeCapability | undefined;
  readonly secrets: Readonly<Record<string, string>>;
}
export interface CapacityRange {
  readonly requiredBytes: bigint;
  readonly limitBytes: bigint;
}
export interface NodeExpandVolumeResponse {
  readonly capacityBytes: bigint;
}
export interface NodeGetCapabilitiesRequest {
}
export interface NodeGetCapabilitiesResponse {
  readonly capabilities: readonly NodeServiceCapability[];
}
export interface NodeServiceCapability {
  readonly rpc: NodeServiceRpc | undefined;
}
export interface NodeServiceRpc {
  readonly type: NodeCapability;
}
export interface NodeGetInfoRequest {
}
export interface NodeGetInfoResponse {
  readonly nodeId: string;
  readonly maxVolumesPerNode: bigint;
  readonly accessibleTopology: Topology | undefined;
}
export interface Topology {
  readonly segments: Readonly<Record<string, string>>;
}
const schema = new Schema(`
enum AccessModeKind|UNKNOWN 0|SINGLE_NODE_WRITER 1|SINGLE_NODE_READER_ONLY 2|MULTI_NODE_READER_ONLY 3|MULTI_NODE_SINGLE_WRITER 4|MULTI_NODE_MULTI_WRITER 5|SINGLE_NODE_SINGLE_WRITER 6|SINGLE_NODE_MULTI_WRITER 7
enum UsageUnit|UNKNOWN 0|BYTES 1|INODES 2
enum NodeCapability|NOTHING 0|STAGE_UNSTAGE_VOLUME 1|GET_VOLUME_STATS 2|EXPAND_VOLUME 3|VOLUME_CONDITION 4|SINGLE_NODE_MULTI_WRITER 5|VOLUME_MOUNT_GROUP 6
message NodeStageVolumeRequest|1 volumeId string|2 publishContext map string string|3 stagingTargetPath string|4 volumeCapability VolumeCapability|5 secrets map string string|6 volumeContext map string string
message NodeStageVolumeResponse
message NodeUnstageVolumeRequest|1 volumeId string|2 stagingTargetPath string
message NodeUnstageVolumeResponse
message NodePublishVolumeRequest|1 volumeId string|2 publishContext map string string|3 stagingTargetPath string|4 targetPath string|5 volumeCapability VolumeCapability|6 readonly bool|7 secrets map string string|8 volumeContext map string string
message NodePublishVolumeResponse
message NodeUnpublishVolumeRequest|1 volumeId string|2 targetPath string
message NodeUnpublishVolumeResponse
message VolumeCapability|1 block BlockVolume|2 mount MountVolume|3 accessMode AccessMode
message BlockVolume
message MountVolume|1 fsType string|2 mountFlags repeated string|3 volumeMountGroup string
message AccessMode|1 mode AccessModeKind
message NodeGetVolumeStatsRequest|1 volumeId string|2 volumePath string|3 stagingTargetPath string
message NodeGetVolumeStatsResponse|1 usage repeated VolumeUsage|2 volumeCondition VolumeCondition
message VolumeUsage|1 available int64|2 total int64|3 used int64|4 unit UsageUnit
message VolumeCondition|1 abnormal bool|2 message string
message NodeExpandVolumeRequest|1 volumeId string|2 volumePath string|3 capacityRange CapacityRange|4 stagingTargetPath string|5 volumeCapability VolumeCapability|6 secrets map string string
message CapacityRange|1 requiredBytes int64|2 limitBytes int64
message NodeExpandVolumeResponse|1 capacityBytes int64
message NodeGetCapabilitiesRequest
message NodeGetCapabilitiesResponse|1 capabilities repeated NodeServiceCapability
message NodeServiceCapability|1 rpc NodeServiceRpc
message NodeServiceRpc|1 type NodeCapability
message NodeGetInfoRequest
message NodeGetInfoResponse|1 nodeId string|2 maxVolumesPerNode int64|3 accessibleTopology Topology
message Topology|1 segments map string string
`);

export const NodeStageVolumeRequest: MessageType<NodeStageVolumeRequest> = schema.message('NodeStageVolumeRequest');
export const NodeStageVolumeResponse: MessageType<NodeStageVolumeResponse> = schema.message('NodeStageVolumeResponse');
export const NodeUnstageVolumeRequest: MessageType<NodeUnstageVolumeRequest> = schema.message('NodeUnstageVolumeRequest');
export const NodeUnstageVolumeResponse: MessageType<NodeUnstageVolumeResponse> = schema.message('NodeUnstageVolumeResponse');
export const NodePublishVolumeRequest: MessageType<NodePublishVolumeRequest> = schema.message('NodePublishVolumeRequest');
export const NodePublishVolumeResponse: MessageType<NodePublishVolumeResponse> = schema.message('NodePublishVolumeResponse');
export const NodeUnpublishVolumeRequest: MessageType<NodeUnpublishVolumeRequest> = schema.message('NodeUnpublishVolumeRequest');
export const NodeUnpublishVolumeResponse: MessageType<NodeUnpublishVolumeResponse> = schema.message('NodeUnpublishVolumeResponse');
export const VolumeCapability: MessageType<VolumeCapability> = schema.message('VolumeCapability');
export const BlockVolume: MessageType<BlockVolume> = schema.message('BlockVolume');
export const MountVolume: MessageType<MountVolume> = schema.message('MountVolume');
export const AccessMode: MessageType<AccessMode> = schema.message('AccessMode');
export const NodeGetVolumeStatsRequest: MessageType<NodeGetVolumeStatsRequest> = schema.message('NodeGetVolumeStatsRequest');
export const NodeGetVolumeStatsResponse: MessageType<NodeGetVolumeStatsResponse> = schema.message('NodeGetVolumeStatsResponse');
export const VolumeUsage: MessageType<VolumeUsage> = schema.message('VolumeUsage');
export const VolumeCondition: MessageType<VolumeCondition> = schema.message('VolumeCondition');
export const NodeExpandVolumeRequest: MessageType<NodeExpandVolumeRequest> = schema.message('NodeExpandVolumeRequest');
export const CapacityRange: MessageType<CapacityRange> = schema.message('CapacityRange');
export const NodeExpandVolumeResponse: MessageType<NodeExpandVolumeResponse> = schema.message('NodeExpandVolumeResponse');
export const NodeGetCapabilitiesRequest: MessageType<NodeGetCapabilitiesRequest> = schema.message('NodeGetCapabilitiesRequest');
export const NodeGetCapabilitiesResponse: MessageType<NodeGetCapabilitiesResponse> = schema.message('NodeGetCapabilitiesResponse');
export const NodeServiceCapability: MessageType<NodeServiceCapability> = schema.message('NodeServiceCapability');
export const NodeServiceRpc: MessageType<NodeServiceRpc> = schema.message('NodeServiceRpc');
export const NodeGetInfoRequest: MessageType<NodeGetInfoRequest> = schema.message('NodeGetInfoRequest');
export const NodeGetInfoResponse: MessageType<NodeGetInfoResponse> = schema.message('NodeGetInfoResponse');
export const Topology: MessageType<Topology> = schema.message('Topology');

export interface NodeMethods {
  readonly nodeStageVolume: Unary<NodeStageVolumeRequest, NodeStageVolumeResponse>;
  readonly nodeUnstageVolume: Unary<NodeUnstageVolumeRequest, NodeUnstageVolumeResponse>;
  readonly nodePublishVolume: Unary<NodePublishVolumeRequest, NodePublishVolumeResponse>;
  readonly nodeUnpublishVolume: Unary<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>;
  readonly nodeGetVolumeStats: Unary<NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse>;
  readonly nodeExpandVolume: Unary<NodeExpandVolumeRequest, NodeExpandVolumeResponse>;
  readonly nodeGetCapabilities: Unary<NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse>;
  readonly nodeGetInfo: Unary<NodeGetInfoRequest, NodeGetInfoResponse>;
}

export const Node: ServiceType<NodeMethods> = serviceType<NodeMethods>('csi.v1.Node', {
  nodeStageVolume: { name: 'NodeStageVolume', kind: 'unary', request: NodeStageVolumeRequest, response: NodeStageVolumeResponse },
  nodeUnstageVolume: { name: 'NodeUnstageVolume', kind: 'unary', request: NodeUnstageVolumeRequest, response: NodeUnstageVolumeResponse },
  nodePublishVolume: { name: 'NodePublishVolume', kind: 'unary', request: NodePublishVolumeRequest, response: NodePublishVolumeResponse },
  nodeUnpublishVolume: { name: 'NodeUnpublishVolume', kind: 'unary', request: NodeUnpublishVolumeRequest, response: NodeUnpublishVolumeResponse },
  nodeGetVolumeStats: { name: 'NodeGetVolumeStats', kind: 'unary', request: NodeGetVolumeStatsRequest, response: NodeGetVolumeStatsResponse },
  nodeExpandVolume: { name: 'NodeExpandVolume', kind: 'unary', request: NodeExpandVolumeRequest, response: NodeExpandVolumeResponse },
  nodeGetCapabilities: { name: 'NodeGetCapabilities', kind: 'unary', request: NodeGetCapabilitiesRequest, response: NodeGetCapabilitiesResponse },
  nodeGetInfo: { name: 'NodeGetInfo', kind: 'unary', request: NodeGetInfoRequest, response: NodeGetInfoResponse },
});
