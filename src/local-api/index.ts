/**
 * A Kubernetes API server for one node, in this process:
 *
 *     http/ ──parsed request──> registry/ ──steps of a write──> strategies in pods/, kinds/
 *       │                          └──objects──> storage/ (memory), persistence/ (disk)
 *       ├──credentials──> security/ (authenticates and authorizes)
 *       └──exec, logs, proxy──> streams/ ──> the kubelet
 */

export type { FieldCause, ResourceStrategy, WriteContext } from './api/api-types.ts';
export { type ApiRequest, nodeNameOfUser } from './api/api-types.ts';
export { conflict, forbiddenForUser, invalid, notFound } from './api/status-errors.ts';
export { type StoredObject, toWireObject } from './api/stored-object.ts';
export type { ManifestApplier } from './manifest-applier.ts';
export { referencesOf } from './node-access/pod-references.ts';
export { type LocalApiOptions, type OpenLocalApi, openLocalApi } from './open-local-api.ts';
export { podStatusCauses, withPreservedStatus } from './pods/pod-status.ts';
export { type Grant, parseGrant } from './security/index.ts';
export { VersionedStore } from './storage/versioned-store.ts';
export type {
  KubeletCredentials,
  KubeletDialer,
  KubeletEndpoint,
} from './streams/index.ts';
