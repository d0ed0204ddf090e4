/**
 * A Kubernetes API for one node, in this process:
 *
 *     http/ ──understands──> core/ ──by the rules of──> pods/, kinds/
 *       │ security/ says who may     │ store/ keeps it
 *       └──passes on──> streams/ ──> the kubelet
 */

export type { ManifestKeeper } from './manifest-keeper.ts';
export { type LocalApiOptions, type OpenLocalApi, openLocalApi } from './open-local-api.ts';
export { type Grant, parseGrant } from './security/index.ts';
export type {
  KubeletCredentials,
  KubeletDoor,
  KubeletPlace,
  SendMessage,
  SocketParts,
  UpgradedClient,
} from './streams/index.ts';
