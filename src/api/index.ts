export { type ApiRefusal, type ApiStatus, apiError, isApiCode } from './client/api-error.ts';
export { callMetrics } from './client/call-metrics.ts';
export type { CallLimits, CallResult } from './client/calls.ts';
export type {
  ApiClient,
  ApiList,
  ApiObject,
  DeleteOptions,
  GetOptions,
  ListQuery,
  Patch,
  PatchKind,
  WatchEvent,
  WatchQuery,
} from './client/client.ts';
export {
  type ApiResource,
  apiResources,
  apiVersionOf,
  type Collection,
  collectionPath,
  type ObjectRef,
  objectPath,
} from './client/resource.ts';
export {
  type ApiClientOptions,
  type ApiClients,
  type ApiClientsOptions,
  type ApiConnectionOptions,
  type ApiConnections,
  createApiClient,
  createApiClients,
  eventLimits,
  heartbeatLimits,
  mainLimits,
  type WireApiClient,
} from './client/wire-client-set.ts';
export * from './events/index.ts';
export { hostApiFiles } from './kubeconfig/files.ts';
export {
  type ApiFiles,
  type ExecPlugin,
  type KubeCluster,
  type KubeContext,
  type KubeconfigSource,
  type KubeconfigText,
  type KubeUser,
  loadKubeconfig,
  type Material,
  parseKubeconfig,
} from './kubeconfig/kubeconfig.ts';
export * from './patch/index.ts';
export type { ObjectCheck } from './reflector/received-objects.ts';
export { type ReflectedQuery, Reflector, type ReflectorOptions } from './reflector/reflector.ts';
export type { ReflectorUpdate } from './reflector/reflector-cache.ts';
export { ObjectReflector, type ObjectReflectorOptions } from './reflector/reflector-single.ts';
export type { Named, ObjectChange } from './reflector/store.ts';
export { isOlderVersion } from './reflector/store.ts';
export { type RateLimit, rateLimitOf } from './transport/rate-limit.ts';
export { Reachability } from './transport/reachability.ts';
