export { type CriClient, type CriClientOptions, type CriObserver, createCriClient } from './client.ts';
export type { Ingest } from './containerd-content.ts';
export type { ContainerdEvent } from './containerd-events.ts';
export {
  Any,
  ContainerEvent,
  Content,
  ContentInfo,
  type ContentMethods,
  Envelope,
  Events,
  type EventsMethods,
  IngestStatus,
  ListContentRequest,
  ListContentResponse,
  ListStatusesRequest,
  ListStatusesResponse,
  TaskEvent,
  TaskExit,
} from './gen/containerd.ts';
export * from './gen/runtime.ts';
export { criMetrics } from './metrics.ts';
export { type CriMethods, type CriOperation, operationNames } from './operations.ts';
export { type CriTransport, parseEndpoint, wireTransport } from './transport.ts';
