// Made from the .proto files of this package by `npm run generate`; do not edit.
import { type ServerStream, type ServiceType, serviceType, type Unary } from '../../protocols/grpc/index.ts';
import { type MessageType, Schema } from '../../protocols/protobuf/index.ts';

export interface ListContentRequest {
  readonly filters: readonly string[];
}
export interface ListContentResponse {
  readonly info: readonly ContentInfo[];
}
export interface ContentInfo {
  readonly digest: string;
  readonly size: bigint;
  readonly labels: Readonly<Record<string, string>>;
}
export interface ListStatusesRequest {
  readonly filters: readonly string[];
}
export interface ListStatusesResponse {
  readonly statuses: readonly IngestStatus[];
}
export interface IngestStatus {
  readonly startedAt: Timestamp | undefined;
  readonly updatedAt: Timestamp | undefined;
  readonly ref: string;
  readonly offset: bigint;
  readonly total: bigint;
  readonly expected: string;
}
export interface PublishRequest {
  readonly topic: string;
  readonly event: Any | undefined;
}
export interface PublishResponse {
}
export interface SubscribeRequest {
  readonly filters: readonly string[];
}
export interface Envelope {
  readonly timestamp: Timestamp | undefined;
  readonly namespace: string;
  readonly topic: string;
  readonly event: Any | undefined;
}
export interface TaskEvent {
  readonly containerId: string;
}
export interface TaskExit {
  readonly containerId: string;
  readonly id: string;
  readonly pid: number;
  readonly exitStatus: number;
  readonly exitedAt: Timestamp | undefined;
}
export interface ContainerEvent {
  readonly id: string;
}
export interface Timestamp {
  readonly seconds: bigint;
  readonly nanos: number;
}
export interface Any {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}
const schema = new Schema(`
message ListContentRequest|1 filters repeated string
message ListContentResponse|1 info repeated ContentInfo
message ContentInfo|1 digest string|2 size int64|5 labels map string string
message ListStatusesRequest|1 filters repeated string
message ListStatusesResponse|1 statuses repeated IngestStatus
message IngestStatus|1 startedAt Timestamp|2 updatedAt Timestamp|3 ref string|4 offset int64|5 total int64|6 expected string
message PublishRequest|1 topic string|2 event Any
message PublishResponse
message SubscribeRequest|1 filters repeated string
message Envelope|1 timestamp Timestamp|2 namespace string|3 topic string|4 event Any
message TaskEvent|1 containerId string
message TaskExit|1 containerId string|2 id string|3 pid uint32|4 exitStatus uint32|5 exitedAt Timestamp
message ContainerEvent|1 id string
message Timestamp|1 seconds int64|2 nanos int32
message Any|1 typeUrl string|2 value bytes
`);

export const ListContentRequest: MessageType<ListContentRequest> = schema.message('ListContentRequest');
export const ListContentResponse: MessageType<ListContentResponse> = schema.message('ListContentResponse');
export const ContentInfo: MessageType<ContentInfo> = schema.message('ContentInfo');
export const ListStatusesRequest: MessageType<ListStatusesRequest> = schema.message('ListStatusesRequest');
export const ListStatusesResponse: MessageType<ListStatusesResponse> = schema.message('ListStatusesResponse');
export const IngestStatus: MessageType<IngestStatus> = schema.message('IngestStatus');
export const PublishRequest: MessageType<PublishRequest> = schema.message('PublishRequest');
export const PublishResponse: MessageType<PublishResponse> = schema.message('PublishResponse');
export const SubscribeRequest: MessageType<SubscribeRequest> = schema.message('SubscribeRequest');
export const Envelope: MessageType<Envelope> = schema.message('Envelope');
export const TaskEvent: MessageType<TaskEvent> = schema.message('TaskEvent');
export const TaskExit: MessageType<TaskExit> = schema.message('TaskExit');
export const ContainerEvent: MessageType<ContainerEvent> = schema.message('ContainerEvent');
export const Timestamp: MessageType<Timestamp> = schema.message('Timestamp');
export const Any: MessageType<Any> = schema.message('Any');

export interface ContentMethods {
  readonly list: ServerStream<ListContentRequest, ListContentResponse>;
  readonly listStatuses: Unary<ListStatusesRequest, ListStatusesResponse>;
}

export const Content: ServiceType<ContentMethods> = serviceType<ContentMethods>('containerd.services.content.v1.Content', {
  list: { name: 'List', kind: 'server-stream', request: ListContentRequest, response: ListContentResponse },
  listStatuses: { name: 'ListStatuses', kind: 'unary', request: ListStatusesRequest, response: ListStatusesResponse },
});

export interface EventsMethods {
  readonly publish: Unary<PublishRequest, PublishResponse>;
  readonly subscribe: ServerStream<SubscribeRequest, Envelope>;
}

export const Events: ServiceType<EventsMethods> = serviceType<EventsMethods>('containerd.services.events.v1.Events', {
  publish: { name: 'Publish', kind: 'unary', request: PublishRequest, response: PublishResponse },
  subscribe: { name: 'Subscribe', kind: 'server-stream', request: SubscribeRequest, response: Envelope },
});
