export {
  authorize,
  authorizeNodeRequest,
  type NodeDecision,
  type NodeRequest,
} from '../node-access/node-authorizer.ts';
export { enforceNodeRestriction } from '../node-access/node-restriction.ts';
export {
  firstReferencedResource,
  manifestAnnotation,
  type PodObjectReferences,
  referencesOf,
  referencesOnlyManifestObjects,
} from '../node-access/pod-references.ts';
export { Catalogue, createCatalogue } from '../registry/catalogue.ts';
export type { ListOptions } from '../registry/list-options.ts';
export { LocalApi, type LocalApiDeps } from '../registry/local-api.ts';
export { type Freshness, newest, Reads } from '../registry/reads.ts';
export { serverResources } from '../registry/resource-table.ts';
export { type Deleted, inOneTurn, type WriteResult, Writes, type WritesDeps } from '../registry/writes.ts';
export { type ObjectTest, requiredFieldValue, type Selection, selection } from '../selectors/selection.ts';
export type { Durability } from '../storage/durability.ts';
export { heapStorageLimits, type StorageLimits } from '../storage/storage-budget.ts';
export {
  type RestoredState,
  type StoreChange,
  VersionedStore,
  type VersionedStoreOptions,
} from '../storage/versioned-store.ts';
export { ChangeEvent } from '../watch/watcher.ts';
export * from './api-types.ts';
export {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  describeRequest,
  nodeNameOfUser,
  resourceWithSubresource,
} from './api-types.ts';
export {
  type AccessAttributes,
  type AccessDecision,
  type PathAccess,
  type ResourceAccess,
  resourceAccess,
  type TokenCheckResult,
} from './auth-types.ts';
export {
  type ApiResponse,
  failureStatus,
  listBody,
  type ObjectList,
  type ServedWatchEvent,
  statusOf,
  successStatus,
} from './responses.ts';
export {
  alreadyExists,
  badRequest,
  conflict,
  detailsOf,
  expired,
  forbidden,
  forbiddenForUser,
  groupQualified,
  internalError,
  invalid,
  invalidFields,
  methodNotAllowed,
  modifiedMessage,
  type NamedResource,
  notFound,
  pathNotFound,
  resourceVersionTooLarge,
  resourceVersionTooOld,
  unavailable,
} from './status-errors.ts';
export {
  frozen,
  type StoredMeta,
  type StoredObject,
  storedObjectKey,
  toWireObject,
  valueAt,
} from './stored-object.ts';
