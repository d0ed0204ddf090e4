import type { Node } from '../../kinds/index.ts';
import type { CsiApi } from './csi-attach.ts';

/** The part of the connection to the cluster that CSI volumes use. */
export interface CsiClusterLink {
  readonly storage: Pick<CsiApi, 'driver' | 'attachment' | 'secret' | 'claim' | 'volume' | 'changeClaim'>;
  readonly tokens: CsiApi['tokens'];
  readonly claimEvent: CsiApi['claimEvent'];
  readonly node: () => Node | undefined;
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
}

/** What the volumes of drivers need of the cluster. */
export function csiApi(cluster: CsiClusterLink): CsiApi {
  const { storage, tokens } = cluster;
  const lists = (node: Node | undefined, volume: string) =>
    node?.status?.volumesAttached?.some(({ name }) => name === volume) === true;
  return {
    driver: (name, signal) => storage.driver(name, signal),
    attachment: (name, signal) => storage.attachment(name, signal),
    secret: (namespace, name, signal) => storage.secret(namespace, name, signal),
    claim: (namespace, name, signal) => storage.claim(namespace, name, signal),
    volume: (name, signal) => storage.volume(name, signal),
    changeClaim: (claim, change, signal) => storage.changeClaim(claim, change, signal),
    claimEvent: cluster.claimEvent,
    tokens,
    listed: () => {
      const { volumesAttached = [], volumesInUse = [] } = cluster.node()?.status ?? {};
      return [...volumesAttached.map(({ name }) => name), ...volumesInUse];
    },
    // What is at hand may be old; it spares the API the question while nothing has come. Before the cluster knows that
    // the volume is in use here it may take it away again.
    isListed: async (volume, signal) => {
      if (!lists(cluster.node(), volume)) return false;
      const node = await cluster.fetchNode(signal);
      return lists(node, volume) && node.status?.volumesInUse?.includes(volume) === true;
    },
  };
}
