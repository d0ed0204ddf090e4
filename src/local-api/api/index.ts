export { authorize, judgeNode, type NodeVerdict, type NodeWish } from '../node-access/node-authorizer.ts';
export { admitWrite } from '../node-access/node-restriction.ts';
export {
  manifestAnnotation,
  type PodReferences,
  referencedResource,
  referencesOf,
  usesManifestsOnly,
} from '../node-access/pod-references.ts';
export { Catalogue, makeCatalogue } from '../registry/catalogue.ts';
export type { ListOptions } from '../registry/list-options.ts';
export { LocalApi, type LocalApiDeps } from '../registry/local-api.ts';
export { type Freshness, newest, Reads } from '../registry/reads.ts';
export { localResources } from '../registry/resource-table.ts';
export { type Deleted, Writes, type WritesDeps, type Written } from '../registry/writes.ts';
export { type ObjectTest, type Selection, selectedField, selection } from '../selectors/selection.ts';
export type { Durability } from '../storage/durability.ts';
export {
  ObjectStore,
  type ObjectStoreOptions,
  type RestoredState,
  type StoreChange,
} from '../storage/object-store.ts';
export { ChangeLines } from '../watch/watcher.ts';
export * from './api-types.ts';
export {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  describeRequest,
  nodeOf,
  targetOf,
} from './api-types.ts';
export {
  type AccessAttributes,
  type AccessVerdict,
  type PathAccess,
  type ResourceAccess,
  resourceAccess,
  type TokenVerdict,
} from './auth-types.ts';
export {
  type ApiAnswer,
  failureStatus,
  type ObjectList,
  statusOf,
  successStatus,
  type WatchLine,
  wireList,
} from './responses.ts';
export {
  alreadyExists,
  badRequest,
  conflict,
  detailsOf,
  expired,
  forbidden,
  forbiddenTo,
  internalError,
  invalid,
  invalidAs,
  methodNotAllowed,
  modifiedMessage,
  type Named,
  noSuchPath,
  notFound,
  qualified,
  tooLargeVersion,
  tooOldVersion,
  unavailable,
} from './status-errors.ts';
export { frozen, keyOf, overTheWire, type StoredMeta, type StoredObject, valueAt } from './stored-object.ts';
