/**
 * A Kubernetes API for one node, in this process:
 *
 *     http/ ──understands──> core/ ──by the rules of──> pods/, kinds/
 *       │ security/ says who may     │ store/ keeps it
 *       └──passes on──> streams/ ──> the kubelet
 */

export type { FieldCause, KindRules, WriteContext } from './api/api-types.ts';
export { type ApiRequest, nodeOf } from './api/api-types.ts';
export { conflict, forbiddenTo, invalid, notFound } from './api/status-errors.ts';
export { overTheWire, type StoredObject } from './api/stored-object.ts';
export type { ManifestKeeper } from './manifest-objects.ts';
export { referencesOf } from './node-access/pod-references.ts';
export { type LocalApiOptions, type OpenLocalApi, openLocalApi } from './open-local-api.ts';
export { keptPodStatus, podStatusComplaints } from './pods/pod-status.ts';
export { type Grant, parseGrant } from './security/index.ts';
export { ObjectStore } from './storage/object-store.ts';
export type {
  KubeletAddress,
  KubeletCredentials,
  KubeletDialer,
} from './streams/index.ts';
