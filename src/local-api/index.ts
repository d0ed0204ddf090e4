/**
 * A Kubernetes API for one node, in this process:
 *
 *     http/ ──understands──> core/ ──by the rules of──> pods/, kinds/
 *       │ security/ says who may     │ store/ keeps it
 *       └──passes on──> streams/ ──> the kubelet
 */

export type { FieldCause, KindRules, WriteContext } from './core/contract.ts';
export { ObjectStore } from './core/object-store.ts';
export { referencesOf } from './core/pod-references.ts';
export { keptPodStatus, podStatusComplaints } from './core/pod-status-rules.ts';
export { conflict, forbiddenTo, invalid, notFound } from './core/refusals.ts';
export { type ApiRequest, nodeOf } from './core/request.ts';
export { overTheWire, type StoredObject } from './core/stored-object.ts';
export type { ManifestKeeper } from './manifest-keeper.ts';
export { type LocalApiOptions, type OpenLocalApi, openLocalApi } from './open-local-api.ts';
export { type Grant, parseGrant } from './security/index.ts';
export type {
  KubeletCredentials,
  KubeletDoor,
  KubeletPlace,
} from './streams/index.ts';
