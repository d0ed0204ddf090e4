import type { ClusterNodeOptions } from '../cluster-node.ts';
import type { PlaneFlags } from '../plane-parts.ts';
import { noCluster } from '../programs.ts';
import { SmallCluster } from '../small-cluster.ts';

/** The features of a cluster that a test may need besides an API server and a node. */
export type Need = 'controllers' | 'roles' | 'bootstrap tokens';

export interface Wish {
  readonly flags?: PlaneFlags;
  readonly node?: ClusterNodeOptions;
}

/** The environment of a suite: its name, its features, and how to open a cluster. */
export interface Place {
  /** The name for test output, for example `a real cluster`. */
  readonly name: string;
  /** Why the whole suite is skipped; false if it runs. */
  readonly skip: string | false;
  /** Returns why a test that needs this feature is skipped; false if it runs. */
  lacks(need: Need): string | false;
  /**
   * Opens a cluster whose node is Ready. A shared cluster ignores the options, except the validity
   * of certificates and how the node joins.
   */
  open(options?: Wish): Promise<SmallCluster>;
  /** Closes a cluster that the suite has opened. */
  close(cluster: SmallCluster | undefined): Promise<void>;
}

/** Each suite gets a separate control plane and node. */
export const realCluster: Place = {
  name: 'a real cluster',
  skip: noCluster(),
  lacks: () => false,
  open: ({ flags = {}, node = {} } = {}) => SmallCluster.open(flags, node),
  async close(cluster) {
    await cluster?.[Symbol.asyncDispose]();
  },
};

/** The features that only a real control plane has, with the reason why tests are skipped. */
const embeddedLacks: Readonly<Record<Need, string>> = {
  controllers: 'there are no controllers for Deployments, Jobs, DaemonSets and disruption budgets',
  roles: 'there are no RBAC roles, so only administrators are authorized on nodes',
  'bootstrap tokens': 'bootstrap tokens are not supported',
};

/** kubeling's embedded API; all suites share one API and one node. */
export function embeddedApi(shared: () => SmallCluster): Place {
  return {
    name: 'the embedded API',
    skip: false,
    lacks: (need) => embeddedLacks[need],
    async open({ flags: { signingDuration } = {}, node: { joins } = {} } = {}) {
      const { plane, node } = shared();
      // Existing certificates keep their validity, unless the node joins again.
      if (signingDuration !== undefined) await plane.signFor(signingDuration);
      if (joins === 'by-bootstrap') await node.rejoin();
      return shared();
    },
    close: async () => {},
  };
}
