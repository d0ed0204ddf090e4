// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServiceType, serviceType, type Unary } from '../../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../../protocols/protobuf/index.ts';

export interface Claim {
  readonly namespace: string;
  readonly uid: string;
  readonly name: string;
}
export interface NodePrepareResourcesRequest {
  readonly claims: readonly Claim[];
}
export interface NodePrepareResourcesResponse {
  readonly claims: Readonly<Record<string, NodePrepareResourceResponse>>;
}
export interface NodePrepareResourceResponse {
  readonly devices: readonly Device[];
  readonly error: string;
}
export interface Device {
  readonly requestNames: readonly string[];
  readonly poolName: string;
  readonly deviceName: string;
  readonly cdiDeviceIds: readonly string[];
  readonly shareId: string;
}
export interface NodeUnprepareResourcesRequest {
  readonly claims: readonly Claim[];
}
export interface NodeUnprepareResourcesResponse {
  readonly claims: Readonly<Record<string, NodeUnprepareResourceResponse>>;
}
export interface NodeUnprepareResourceResponse {
  readonly error: string;
}
const schema = new Schema(`
message Claim|1 namespace string|2 uid string|3 name string
message NodePrepareResourcesRequest|1 claims repeated Claim
message NodePrepareResourcesResponse|1 claims map string NodePrepareResourceResponse
message NodePrepareResourceResponse|1 devices repeated Device|2 error string
message Device|1 requestNames repeated string|2 poolName string|3 deviceName string|4 cdiDeviceIds repeated string|5 shareId string
message NodeUnprepareResourcesRequest|1 claims repeated Claim
message NodeUnprepareResourcesResponse|1 claims map string NodeUnprepareResourceResponse
message NodeUnprepareResourceResponse|1 error string
`);

export const Claim: MessageType<Claim> = schema.message('Claim');
export const NodePrepareResourcesRequest: MessageType<NodePrepareResourcesRequest> = schema.message('NodePrepareResourcesRequest');
export const NodePrepareResourcesResponse: MessageType<NodePrepareResourcesResponse> = schema.message('NodePrepareResourcesResponse');
export const NodePrepareResourceResponse: MessageType<NodePrepareResourceResponse> = schema.message('NodePrepareResourceResponse');
export const Device: MessageType<Device> = schema.message('Device');
export const NodeUnprepareResourcesRequest: MessageType<NodeUnprepareResourcesRequest> = schema.message('NodeUnprepareResourcesRequest');
export const NodeUnprepareResourcesResponse: MessageType<NodeUnprepareResourcesResponse> = schema.message('NodeUnprepareResourcesResponse');
export const NodeUnprepareResourceResponse: MessageType<NodeUnprepareResourceResponse> = schema.message('NodeUnprepareResourceResponse');

export interface DRAPluginMethods {
  readonly nodePrepareResources: Unary<NodePrepareResourcesRequest, NodePrepareResourcesResponse>;
  readonly nodeUnprepareResources: Unary<NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse>;
}

export const DRAPlugin: ServiceType<DRAPluginMethods> = serviceType<DRAPluginMethods>('k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin', {
  nodePrepareResources: { name: 'NodePrepareResources', kind: 'unary', request: NodePrepareResourcesRequest, response: NodePrepareResourcesResponse },
  nodeUnprepareResources: { name: 'NodeUnprepareResources', kind: 'unary', request: NodeUnprepareResourcesRequest, response: NodeUnprepareResourcesResponse },
});
