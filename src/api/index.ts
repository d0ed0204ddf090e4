export { type ApiRefusal, type ApiStatus, apiError, isApiCode } from './api-error.ts';
export { callMetrics } from './call-metrics.ts';
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
} from './client.ts';
export * from './events/index.ts';
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
} from './kubeconfig.ts';
export { hostApiFiles } from './kubeconfig-files.ts';
export * from './patch/index.ts';
export { type RateLimit, rateLimitOf } from './rate-limit.ts';
export { Reachability } from './reachability.ts';
export { type ReflectedQuery, Reflector, type ReflectorOptions } from './reflector.ts';
export type { ReflectedNews } from './reflector-copy.ts';
export type { ObjectCheck } from './reflector-intake.ts';
export { ObjectReflector, type ObjectReflectorOptions } from './reflector-single.ts';
export {
  type ApiResource,
  apiResources,
  apiVersionOf,
  type Collection,
  collectionPath,
  type ObjectRef,
  objectPath,
} from './resource.ts';
export type { Named, ObjectChange } from './store.ts';
export { isOlderVersion } from './store-version.ts';
export type { CallLimits, CallSeen } from './wire-client-calls.ts';
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
} from './wire-client-set.ts';
