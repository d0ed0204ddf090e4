import type { ThresholdValue } from '../config/index.ts';
import type { Taint } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';

/** What to do when the Node object is deleted. */
export type AfterDeletion = 're-register' | 'exit' | 'stay';

/** The configuration of the node. Labels, taints and addresses were validated by the parser. */
export interface NodeSettings {
  /** From `nodeNameOf`. */
  readonly name: string;
  /** The host name or its override; used as address and label. */
  readonly hostname: string;
  /** Whether the kubelet creates the Node object. */
  readonly register: 'self' | 'never';
  readonly recreation: AfterDeletion;
  /** From --node-labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Empty for none. */
  readonly providerId: string;
  readonly cloudProvider: '' | 'external';
  /**
   * From --node-ip: none, one, or one of each family; 0.0.0.0 and :: only set the preferred family.
   */
  readonly ips: readonly string[];
  /** Whether the attach-detach controller attaches volumes to this node. */
  readonly attachDetach: 'controller' | 'kubelet';
  /** The port of the kubelet API; read for each status. */
  readonly kubeletPort: () => number;
  /** The reported Kubernetes version, such as v1.36.4. */
  readonly kubeletVersion: string;
  /** In Go's spelling: amd64, arm64. */
  readonly architecture: string;
  readonly maxPods: number;
  /** Reserved resources: systemReserved and kubeReserved as configured. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /**
   * Number of CPUs in reservedSystemCPUs, which takes precedence over reserved amounts. 0 for none.
   */
  readonly reservedCpus: number;
  /** Hard eviction thresholds, which are not allocatable. */
  readonly hardEviction: {
    readonly memory?: ThresholdValue | undefined;
    readonly nodefs?: ThresholdValue | undefined;
  };
  /** Whether ephemeral storage is allocatable; otherwise its capacity is not required. */
  readonly localStorage: 'counted' | 'not-counted';
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  readonly leaseDurationSeconds: number;
  /** Maximum number of published images; -1 for all. */
  readonly maxImages: number;
  /** Features the scheduler may rely on; sorted here. */
  readonly declaredFeatures: readonly string[];
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * The name of the node: the override, else the host name. Throws NODE_SETTINGS where neither is
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

/** Throws NODE_SETTINGS with all invalid settings. */
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
