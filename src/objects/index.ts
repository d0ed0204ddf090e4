export { type BoundClaim, BoundClaims, type BoundClaimsDeps } from './bound-claims.ts';
export { CheckpointedObjects, type CheckpointedObjectsDeps } from './checkpointed-objects.ts';
export {
  type ChangeDetection,
  type ChangedObject,
  makePodObjects,
  type PodObjectsDeps,
} from './make-pod-objects.ts';
export { CopiesOnDisk, type CopyFiles, type ObjectCopies } from './object-copies.ts';
export { type ClusterCopies, clusterCopies, KeptPodsOfApi } from './pod-copies.ts';
export { type PodObjects, requiredSecret } from './pod-objects.ts';
export { claimNamesOf, configMapNamesOf, secretNamesOf } from './references.ts';
export type { ObjectName, ReferredObject } from './referred-store.ts';
export { ApiRuntimeClasses, type ApiRuntimeClassesDeps } from './runtime-classes.ts';
export { PodServiceAccounts, type PodServiceAccountsDeps } from './service-accounts.ts';
export { type KeptServices, Services, type ServicesDeps } from './services.ts';
export { startFromCopies } from './start-from-copies.ts';

export { StorageObjects } from './storage-objects.ts';
export { type TokenObserver, tokenMetrics } from './token-metrics.ts';
export type { IssuedToken, TokenAsk } from './token-request.ts';
export { type TokenEvents, type TokenSource, Tokens, type TokensDeps } from './tokens.ts';
