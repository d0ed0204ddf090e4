export {
  type AccessAttributes,
  type PathAccess,
  type ResourceAccess,
  resourceAccess,
} from './access-attributes.ts';
export {
  type ApiAnswer,
  failureStatus,
  type ObjectList,
  statusOf,
  successStatus,
  type WatchLine,
  wireList,
} from './answers.ts';
export { Catalogue, makeCatalogue } from './catalogue.ts';
export * from './contract.ts';
export { type Durability, noDurability } from './durability.ts';
export { selectedField } from './field-selector.ts';
export { type ListOptions, plainListOptions } from './list-options.ts';
export { LocalApi, type LocalApiDeps } from './local-api.ts';
export { manifestAnnotation, usesManifestsOnly } from './manifest-objects.ts';
export { authorize, judgeNode, type NodeVerdict, type NodeWish } from './node-authorizer.ts';
export { admitWrite } from './node-restriction.ts';
export {
  ObjectStore,
  type ObjectStoreOptions,
  type RestoredState,
  type StoreChange,
} from './object-store.ts';

export { type PodReferences, referencedResource, referencesOf } from './pod-references.ts';
export { keptPodStatus, podStatusComplaints } from './pod-status-rules.ts';
export { type Freshness, newest, Reads } from './reads.ts';
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
} from './refusals.ts';
export {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  adminUser,
  bootstrapUser,
  describeRequest,
  nodeOf,
  nodeUser,
  targetOf,
} from './request.ts';
export { localResources } from './resource-table.ts';
export { type AccessVerdict, type Reviewers, reviewed, type TokenVerdict } from './reviews.ts';
export { type ObjectTest, type Selection, selection } from './selectors.ts';
export { frozen, keyOf, overTheWire, type StoredMeta, type StoredObject, valueAt } from './stored-object.ts';

export { ChangeLines } from './watch-lines.ts';
export { type Deleted, Writes, type WritesDeps, type Written } from './writes.ts';
