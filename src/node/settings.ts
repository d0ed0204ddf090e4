import type { ThresholdValue } from '../config/index.ts';
import type { Taint } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';

/** Whether the Node object is recreated after it was deleted. */
export type AfterDeletion = 're-register' | 'exit' | 'stay';

/** The settings of the node. The parser has validated labels, taints and addresses. */
export interface NodeSettings {
  /** The node name, from `nodeNameOf`. */
  readonly name: string;
  /** The host name or its override; published as address and label. */
  readonly hostname: string;
  /** Whether the kubelet creates the Node object itself. */
  readonly register: 'self' | 'never';
  readonly recreation: AfterDeletion;
  /** The labels of --node-labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** The name of the cloud provider; empty for none. */
  readonly providerId: string;
  readonly cloudProvider: '' | 'external';
  /**
   * The addresses of --node-ip: none, one, or one of each family; 0.0.0.0 and :: only set the
   * preferred family.
   */
  readonly ips: readonly string[];
  /** Whether the attach-detach controller attaches volumes to this node. */
  readonly attachDetach: 'controller' | 'kubelet';
  /** The port of the kubelet API; read for each status update. */
  readonly kubeletPort: () => number;
  /** The reported Kubernetes version of the kubelet, such as v1.36.4. */
  readonly kubeletVersion: string;
  /** The architecture in Go's spelling: amd64, arm64. */
  readonly architecture: string;
  readonly maxPods: number;
  /** The reserved resources: systemReserved and kubeReserved as configured. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /**
   * The number of CPUs in reservedSystemCPUs, which takes precedence over reserved amounts; 0 for
   * none.
   */
  readonly reservedCpus: number;
  /** The hard eviction thresholds, whose amounts are not allocatable. */
  readonly hardEviction: {
    readonly memory?: ThresholdValue | undefined;
    readonly nodefs?: ThresholdValue | undefined;
  };
  /**
   * Whether ephemeral storage is allocatable; if not, the node can become ready without a known
   * capacity of ephemeral storage.
   */
  readonly localStorage: 'counted' | 'not-counted';
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  readonly leaseDurationSeconds: number;
  /** The maximum number of published images; -1 for all. */
  readonly maxImages: number;
  /** The declared features of the node for the scheduler, in any order. */
  readonly declaredFeatures: readonly string[];
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * The name of the node: the override, else the host name. Throws NODE_SETTINGS when neither is
 * valid.
 */
export function nodeNameOf(override: string, hostname: string): string {
  const name = (override.trim() || hostname.trim()).toLowerCase();
  if (name === '') {
    throw refusal([
      `the machine must have a host name, or --hostname-override must be set: current value is ""`,
    ]);
  }
  if (name.length > 253 || !name.split('.').every((part) => dnsLabel.test(part))) {
    throw refusal([`its name must be a DNS name: current value is ${JSON.stringify(name)}`]);
  }
  return name;
}

/** Validates the settings of the node. Throws NODE_SETTINGS with all invalid ones. */
export function checkNodeSettings(settings: NodeSettings): void {
  const positive = (what: string, value: number) =>
    value > 0 ? [] : [`${what} must be above 0: current value is ${value}`];
  const problems = [
    ...positive('nodeLeaseDurationSeconds', settings.leaseDurationSeconds),
    ...positive('nodeStatusUpdateFrequency', settings.updateFrequencyMs),
    ...positive('nodeStatusReportFrequency', settings.reportFrequencyMs),
    ...(settings.maxImages >= -1
      ? []
      : [`nodeStatusMaxImages must be -1 or more: current value is ${settings.maxImages}`]),
    ...(settings.cloudProvider === '' || settings.cloudProvider === 'external'
      ? []
      : [
          `--cloud-provider must be empty or external: current value is ${JSON.stringify(settings.cloudProvider)}`,
        ]),
  ];
  if (problems.length > 0) throw refusal(problems);
}

function refusal(problems: readonly string[]): KubelingError {
  return new KubelingError('NODE_SETTINGS', `Cannot run as a node: ${problems.join('; ')}`);
}
