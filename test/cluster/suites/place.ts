import type { ClusterNodeOptions } from '../cluster-node.ts';
import type { PlaneFlags } from '../plane-parts.ts';
import { noCluster } from '../programs.ts';
import { SmallCluster } from '../small-cluster.ts';

/** What a case needs besides an API server and a node. */
export type Need = 'controllers' | 'roles' | 'bootstrap tokens';

export interface Wish {
  readonly flags?: PlaneFlags;
  readonly node?: ClusterNodeOptions;
}

/** Where a suite is run: what it is called, what is there, and how to get a cluster. */
export interface Place {
  /** Such as `a real cluster`. */
  readonly name: string;
  /** Why nothing can be run here; false when it can. */
  readonly skip: string | false;
  /** Why a case with this need cannot be run here; false when it can. */
  lacks(need: Need): string | false;
  /** Its node is Ready. Who shares one with others has it as they do, apart from how it is signed for. */
  open(options?: Wish): Promise<SmallCluster>;
  /** Whoever opened it is done with it. */
  close(cluster: SmallCluster | undefined): Promise<void>;
}

/** Each suite has a control plane and a node of its own. */
export const realCluster: Place = {
  name: 'a real cluster',
  skip: noCluster(),
  lacks: () => false,
  open: ({ flags = {}, node = {} } = {}) => SmallCluster.open(flags, node),
  async close(cluster) {
    await cluster?.[Symbol.asyncDispose]();
  },
};

/** All that is tried with a real control plane only. */
const embeddedLacks: Readonly<Record<Need, string>> = {
  controllers: 'nobody makes pods for Deployments, Jobs and DaemonSets, or counts what may be disrupted',
  roles: 'who is no master may nothing on nodes: there are no roles to give',
  'bootstrap tokens': 'nobody is believed for such a token',
};

/** kubeling's own API; the suites share one of it and one node. */
export function embeddedApi(shared: () => SmallCluster): Place {
  return {
    name: 'the embedded API',
    skip: false,
    lacks: (need) => embeddedLacks[need],
    async open({ flags: { signingDuration } = {}, node: { joins } = {} } = {}) {
      const { plane, node } = shared();
      // What was signed for long lives on, unless the node begins anew.
      if (signingDuration !== undefined) await plane.signFor(signingDuration);
      if (joins === 'by-bootstrap') await node.rejoin();
      return shared();
    },
    close: async () => {},
  };
}
