export { GrpcChannel, type GrpcChannelOptions } from './channel.ts';
export { GrpcServer, type GrpcServerOptions, type ServiceAdder, serveOnDemand } from './server.ts';
export {
  type CallOptions,
  type MethodType,
  type ServerStream,
  type ServiceClient,
  type ServiceImplementation,
  type ServiceType,
  serviceType,
  type Unary,
} from './service.ts';
export { codeText, describeCallError, describeStatus, type GrpcCode, GrpcError } from './status.ts';
