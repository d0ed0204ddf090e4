export { type BoundClaim, BoundClaims, type BoundClaimsDeps } from './bound-claims.ts';
export { CheckpointedObjects, type CheckpointedObjectsDeps } from './checkpointed-objects.ts';
export { CopiesOnDisk, type CopyFiles, type ObjectCopies } from './object-copies.ts';
export { ApiPodCopies, type ClusterCopies, clusterCopies, startFromCopies } from './pod-copies.ts';
export {
  type ChangeDetection,
  type ChangedObject,
  makePodObjects,
  type PodObjects,
  type PodObjectsDeps,
  requiredSecret,
} from './pod-objects.ts';
export { claimNamesOf, configMapNamesOf, secretNamesOf } from './references.ts';
export type { ObjectName, ReferredObject } from './referred-store.ts';
export { ApiRuntimeClasses, type ApiRuntimeClassesDeps } from './runtime-classes.ts';
export { PodServiceAccounts, type PodServiceAccountsDeps } from './service-accounts.ts';
export { type ServiceCopies, Services, type ServicesDeps } from './services.ts';

export { StorageObjects } from './storage-objects.ts';
export type { IssuedToken, TokenSpec } from './token-request.ts';
export {
  type TokenEvents,
  type TokenObserver,
  type TokenSource,
  Tokens,
  type TokensDeps,
  tokenMetrics,
} from './tokens.ts';
