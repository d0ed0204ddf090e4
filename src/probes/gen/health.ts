// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServiceType, serviceType, type Unary } from '../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../protocols/protobuf/index.ts';

export type ServingStatus = 'UNKNOWN' | 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN' | 'UNRECOGNIZED';
export interface HealthCheckRequest {
  readonly service: string;
}
export interface HealthCheckResponse {
  readonly status: ServingStatus;
}
const schema = new Schema(`
enum ServingStatus|UNKNOWN 0|SERVING 1|NOT_SERVING 2|SERVICE_UNKNOWN 3
message HealthCheckRequest|1 service string
message HealthCheckResponse|1 status ServingStatus
`);

export const HealthCheckRequest: MessageType<HealthCheckRequest> = schema.message('HealthCheckRequest');
export const HealthCheckResponse: MessageType<HealthCheckResponse> = schema.message('HealthCheckResponse');

export interface HealthMethods {
  readonly check: Unary<HealthCheckRequest, HealthCheckResponse>;
}

export const Health: ServiceType<HealthMethods> = serviceType<HealthMethods>('grpc.health.v1.Health', {
  check: { name: 'Check', kind: 'unary', request: HealthCheckRequest, response: HealthCheckResponse },
});
