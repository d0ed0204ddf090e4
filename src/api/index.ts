export { type ApiRefusal, type ApiStatus, apiError, isApiCode } from './api-error.ts';
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
export {
  type ApiResource,
  apiResources,
  apiVersionOf,
  type Collection,
  collectionPath,
  type ObjectRef,
  objectPath,
} from './resource.ts';
