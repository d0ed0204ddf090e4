// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServiceType, serviceType, type Unary } from '../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../protocols/protobuf/index.ts';

export interface InfoRequest {
}
export interface PluginInfo {
  readonly type: string;
  readonly name: string;
  readonly endpoint: string;
  readonly supportedVersions: readonly string[];
}
export interface RegistrationStatus {
  readonly pluginRegistered: boolean;
  readonly error: string;
}
export interface RegistrationStatusResponse {
}
const schema = new Schema(`
message InfoRequest
message PluginInfo|1 type string|2 name string|3 endpoint string|4 supportedVersions repeated string
message RegistrationStatus|1 pluginRegistered bool|2 error string
message RegistrationStatusResponse
`);

export const InfoRequest: MessageType<InfoRequest> = schema.message('InfoRequest');
export const PluginInfo: MessageType<PluginInfo> = schema.message('PluginInfo');
export const RegistrationStatus: MessageType<RegistrationStatus> = schema.message('RegistrationStatus');
export const RegistrationStatusResponse: MessageType<RegistrationStatusResponse> = schema.message('RegistrationStatusResponse');

export interface RegistrationMethods {
  readonly getInfo: Unary<InfoRequest, PluginInfo>;
  readonly notifyRegistrationStatus: Unary<RegistrationStatus, RegistrationStatusResponse>;
}

export const Registration: ServiceType<RegistrationMethods> = serviceType<RegistrationMethods>('pluginregistration.Registration', {
  getInfo: { name: 'GetInfo', kind: 'unary', request: InfoRequest, response: PluginInfo },
  notifyRegistrationStatus: { name: 'NotifyRegistrationStatus', kind: 'unary', request: RegistrationStatus, response: RegistrationStatusResponse },
});
