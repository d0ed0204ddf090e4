/** The values that differ between the configurations of nodes. */
export interface NodeConfigFacts {
  readonly clientCaFile: string;
  readonly manifestDir: string;
  readonly podLogsDir: string;
  readonly cgroupRoot: string;
  readonly runtimeSocket: string;
  readonly port: number;
  readonly healthzPort: number;
}

/** Builds a KubeletConfiguration like that of a kubeadm node, with separate paths and ports. */
export function nodeConfig(facts: NodeConfigFacts, more: object): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: facts.clientCaFile },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: facts.cgroupRoot,
    clusterDNS: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    containerRuntimeEndpoint: `unix://${facts.runtimeSocket}`,
    // The eviction thresholds are very low, because the fill level of the machine's disks must not
    // affect the tests.
    evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '1Mi', 'imagefs.available': '1Mi' },
    failCgroupV1: false,
    failSwapOn: false,
    healthzPort: facts.healthzPort,
    // The kubelet creates no iptables chains, because they would remain on the machine.
    makeIPTablesUtilChains: false,
    podLogsDir: facts.podLogsDir,
    port: facts.port,
    staticPodPath: facts.manifestDir,
    ...more,
  };
}
