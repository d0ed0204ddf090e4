// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServerStream, type ServiceType, serviceType, type Unary } from '../../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../../protocols/protobuf/index.ts';

export interface Empty {
}
export interface RegisterRequest {
  readonly version: string;
  readonly endpoint: string;
  readonly resourceName: string;
  readonly options: DevicePluginOptions | undefined;
}
export interface DevicePluginOptions {
  readonly preStartRequired: boolean;
  readonly getPreferredAllocationAvailable: boolean;
}
export interface ListAndWatchResponse {
  readonly devices: readonly Device[];
}
export interface Device {
  readonly ID: string;
  readonly health: string;
  readonly topology: TopologyInfo | undefined;
}
export interface TopologyInfo {
  readonly nodes: readonly NUMANode[];
}
export interface NUMANode {
  readonly ID: bigint;
}
export interface PreferredAllocationRequest {
  readonly containerRequests: readonly ContainerPreferredAllocationRequest[];
}
export interface ContainerPreferredAllocationRequest {
  readonly availableDeviceIDs: readonly string[];
  readonly mustIncludeDeviceIDs: readonly string[];
  readonly allocationSize: number;
}
export interface PreferredAllocationResponse {
  readonly containerResponses: readonly ContainerPreferredAllocationResponse[];
}
export interface ContainerPreferredAllocationResponse {
  readonly deviceIDs: readonly string[];
}
export interface AllocateRequest {
  readonly containerRequests: readonly ContainerAllocateRequest[];
}
export interface ContainerAllocateRequest {
  readonly devicesIds: readonly string[];
}
export interface AllocateResponse {
  readonly containerResponses: readonly ContainerAllocateResponse[];
}
export interface ContainerAllocateResponse {
  readonly envs: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly DeviceSpec[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly cdiDevices: readonly CDIDevice[];
}
export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
}
export interface DeviceSpec {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly permissions: string;
}
export interface CDIDevice {
  readonly name: string;
}
export interface PreStartContainerRequest {
  readonly devicesIds: readonly string[];
}
export interface PreStartContainerResponse {
}
const schema = new Schema(`
message Empty
message RegisterRequest|1 version string|2 endpoint string|3 resourceName string|4 options DevicePluginOptions
message DevicePluginOptions|1 preStartRequired bool|2 getPreferredAllocationAvailable bool
message ListAndWatchResponse|1 devices repeated Device
message Device|1 ID string|2 health string|3 topology TopologyInfo
message TopologyInfo|1 nodes repeated NUMANode
message NUMANode|1 ID int64
message PreferredAllocationRequest|1 containerRequests repeated ContainerPreferredAllocationRequest
message ContainerPreferredAllocationRequest|1 availableDeviceIDs repeated string|2 mustIncludeDeviceIDs repeated string|3 allocationSize int32
message PreferredAllocationResponse|1 containerResponses repeated ContainerPreferredAllocationResponse
message ContainerPreferredAllocationResponse|1 deviceIDs repeated string
message AllocateRequest|1 containerRequests repeated ContainerAllocateRequest
message ContainerAllocateRequest|1 devicesIds repeated string
message AllocateResponse|1 containerResponses repeated ContainerAllocateResponse
message ContainerAllocateResponse|1 envs map string string|2 mounts repeated Mount|3 devices repeated DeviceSpec|4 annotations map string string|5 cdiDevices repeated CDIDevice
message Mount|1 containerPath string|2 hostPath string|3 readOnly bool
message DeviceSpec|1 containerPath string|2 hostPath string|3 permissions string
message CDIDevice|1 name string
message PreStartContainerRequest|1 devicesIds repeated string
message PreStartContainerResponse
`);

export const Empty: MessageType<Empty> = schema.message('Empty');
export const RegisterRequest: MessageType<RegisterRequest> = schema.message('RegisterRequest');
export const DevicePluginOptions: MessageType<DevicePluginOptions> = schema.message('DevicePluginOptions');
export const ListAndWatchResponse: MessageType<ListAndWatchResponse> = schema.message('ListAndWatchResponse');
export const Device: MessageType<Device> = schema.message('Device');
export const TopologyInfo: MessageType<TopologyInfo> = schema.message('TopologyInfo');
export const NUMANode: MessageType<NUMANode> = schema.message('NUMANode');
export const PreferredAllocationRequest: MessageType<PreferredAllocationRequest> = schema.message('PreferredAllocationRequest');
export const ContainerPreferredAllocationRequest: MessageType<ContainerPreferredAllocationRequest> = schema.message('ContainerPreferredAllocationRequest');
export const PreferredAllocationResponse: MessageType<PreferredAllocationResponse> = schema.message('PreferredAllocationResponse');
export const ContainerPreferredAllocationResponse: MessageType<ContainerPreferredAllocationResponse> = schema.message('ContainerPreferredAllocationResponse');
export const AllocateRequest: MessageType<AllocateRequest> = schema.message('AllocateRequest');
export const ContainerAllocateRequest: MessageType<ContainerAllocateRequest> = schema.message('ContainerAllocateRequest');
export const AllocateResponse: MessageType<AllocateResponse> = schema.message('AllocateResponse');
export const ContainerAllocateResponse: MessageType<ContainerAllocateResponse> = schema.message('ContainerAllocateResponse');
export const Mount: MessageType<Mount> = schema.message('Mount');
export const DeviceSpec: MessageType<DeviceSpec> = schema.message('DeviceSpec');
export const CDIDevice: MessageType<CDIDevice> = schema.message('CDIDevice');
export const PreStartContainerRequest: MessageType<PreStartContainerRequest> = schema.message('PreStartContainerRequest');
export const PreStartContainerResponse: MessageType<PreStartContainerResponse> = schema.message('PreStartContainerResponse');

export interface RegistrationMethods {
  readonly register: Unary<RegisterRequest, Empty>;
}

export const Registration: ServiceType<RegistrationMethods> = serviceType<RegistrationMethods>('v1beta1.Registration', {
  register: { name: 'Register', kind: 'unary', request: RegisterRequest, response: Empty },
});

export interface DevicePluginMethods {
  readonly getDevicePluginOptions: Unary<Empty, DevicePluginOptions>;
  readonly listAndWatch: ServerStream<Empty, ListAndWatchResponse>;
  readonly getPreferredAllocation: Unary<PreferredAllocationRequest, PreferredAllocationResponse>;
  readonly allocate: Unary<AllocateRequest, AllocateResponse>;
  readonly preStartContainer: Unary<PreStartContainerRequest, PreStartContainerResponse>;
}

export const DevicePlugin: ServiceType<DevicePluginMethods> = serviceType<DevicePluginMethods>('v1beta1.DevicePlugin', {
  getDevicePluginOptions: { name: 'GetDevicePluginOptions', kind: 'unary', request: Empty, response: DevicePluginOptions },
  listAndWatch: { name: 'ListAndWatch', kind: 'server-stream', request: Empty, response: ListAndWatchResponse },
  getPreferredAllocation: { name: 'GetPreferredAllocation', kind: 'unary', request: PreferredAllocationRequest, response: PreferredAllocationResponse },
  allocate: { name: 'Allocate', kind: 'unary', request: AllocateRequest, response: AllocateResponse },
  preStartContainer: { name: 'PreStartContainer', kind: 'unary', request: PreStartContainerRequest, response: PreStartContainerResponse },
});
