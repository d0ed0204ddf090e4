import { type ApiClient, Reachability } from '../../../src/api/index.ts';
import type { CriClient } from '../../../src/cri/index.ts';
import { ClusterNode } from '../../../src/kubelet/cluster/index.ts';
import type { Clock, Logger, MetricRegistry, Random } from '../../../src/lib/index.ts';
import type { NodeMachineInfo, NodeSettings } from '../../../src/node/index.ts';
import { type CopyFiles, clusterCopies } from '../../../src/objects/index.ts';
import { nodeName } from '../manifests.ts';
import type { ClusterWorld } from './cluster-world.ts';
import { reachingClient } from './reaching-client.ts';

export interface ClusterLifeParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly files: CopyFiles;
  /** Wraps the API client of this kubelet process. */
  readonly around: (client: ApiClient) => ApiClient;
  /** Pod capacity of the node; 110 by default. */
  readonly maxPods?: number | undefined;
}

const heartbeatMs = 10_000;
const rootDir = '/var/lib/kubelet';
const address = '10.0.0.1';

const nodeSettings: NodeSettings = {
  name: nodeName,
  hostname: nodeName,
  register: 'self',
  recreation: 're-register',
  labels: {},
  taints: [],
  providerId: '',
  cloudProvider: '',
  ips: [address],
  attachDetach: 'controller',
  kubeletPort: () => 10_250,
  kubeletVersion: 'v1.36.4',
  architecture: 'amd64',
  maxPods: 110,
  reserved: [],
  reservedCpus: 0,
  hardEviction: {},
  localStorage: 'not-counted',
  updateFrequencyMs: heartbeatMs,
  reportFrequencyMs: 300_000,
  leaseDurationSeconds: 40,
  maxImages: 50,
  declaredFeatures: [],
};

const machine: NodeMachineInfo = {
  read: async (path) => (path === '/etc/machine-id' ? 'machine' : undefined),
  addresses: () => [{ interface: 'eth0', address }],
  lookup: () => Promise.reject(new Error('The simulated machine has no DNS')),
  kernelRelease: () => '6.1.0',
};

/** Connects one kubelet process to the simulated API server. */
export function clusterLife({ api, node, copies }: ClusterWorld, parts: ClusterLifeParts): ClusterNode {
  const reach = new Reachability(parts.clock, parts.logger);
  const client = (deadlineMs: number) =>
    reachingClient(parts.around(api.client(node, { deadlineMs })), reach);
  return new ClusterNode({
    ...parts,
    ...(copies === undefined ? {} : { copies: clusterCopies({ ...parts, rootDir }) }),
    clients: {
      main: client(30_000),
      events: client(30_000),
      heartbeat: client(heartbeatMs),
      closeSilent() {},
    },
    machine,
    node: { ...nodeSettings, maxPods: parts.maxPods ?? nodeSettings.maxPods },
    runtime: { name: 'containerd', version: '2.1.0' },
    changeDetection: 'Watch',
    syncFrequencyMs: 60_000,
    capacity: () => ({
      milliCpu: 4_000,
      memory: 8 * 2 ** 30,
      ephemeralStorage: undefined,
      hugePages: new Map(),
      swap: 0,
    }),
  });
}
