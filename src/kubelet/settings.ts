import type { LinuxNode } from '../runtime/index.ts';

/** What the kubelet is told once, from its configuration and from what the machine is. */
export interface KubeletSettings {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly logLinksDir: string;
  /** Empty for none. */
  readonly staticPodPath: string;
  readonly staticPodUrl: string;
  readonly staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  readonly fileCheckMs: number;
  readonly httpCheckMs: number;
  readonly syncFrequencyMs: number;
  readonly cgroupRoot: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly capacity: { readonly milliCpu: number; readonly memoryBytes: number };
  readonly node: LinuxNode;
  readonly podPidsLimit: number;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  readonly resolvConf: string;
  readonly seccompFallback: 'RuntimeDefault' | 'Unconfined';
  readonly maxPods: number;
  readonly maxRestartWaitMs: number;
  readonly pulls: { readonly maxParallel: number | undefined; readonly qps: number; readonly burst: number };
  readonly gc: {
    readonly minAgeMs: number;
    readonly maxPerContainer: number;
    readonly maxContainers: number;
  };
  readonly isGateEnabled: (gate: string) => boolean;
}
