/** What a node's configuration is made of. */
export interface NodeConfigFacts {
  readonly clientCaFile: string;
  readonly manifestDir: string;
  readonly podLogsDir: string;
  readonly cgroupRoot: string;
  readonly runtimeSocket: string;
  readonly port: number;
  readonly healthzPort: number;
}

/** A KubeletConfiguration as a kubeadm node has it, with places and ports of its own. */
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
    // The machine's disks are not what is tested.
    evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '1Mi', 'imagefs.available': '1Mi' },
    failCgroupV1: false,
    failSwapOn: false,
    healthzPort: facts.healthzPort,
    // These chains would stay on the machine.
    makeIPTablesUtilChains: false,
    podLogsDir: facts.podLogsDir,
    port: facts.port,
    staticPodPath: facts.manifestDir,
    ...more,
  };
}
