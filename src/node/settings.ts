import type { ThresholdValue } from '../config/index.ts';
import type { Taint } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';

/** What becomes of this kubelet when somebody deletes its Node object. */
export type AfterDeletion = 're-register' | 'exit' | 'stay';

/** What the configuration says about the node. Labels, taints and addresses were checked where they were read. */
export interface NodeSettings {
  /** As `nodeNameOf` makes it. */
  readonly name: string;
  /** What the machine calls itself, or is told to; the address and the label of that kind. */
  readonly hostname: string;
  /** Whether the Node object is made by us, or by somebody else. */
  readonly register: 'self' | 'never';
  readonly recreation: AfterDeletion;
  /** Of --node-labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Empty where there is none. */
  readonly providerId: string;
  readonly cloudProvider: '' | 'external';
  /** Of --node-ip: none, one, or one of each family; 0.0.0.0 and :: only tell which family is preferred. */
  readonly ips: readonly string[];
  /** Whether a controller of the cluster attaches volumes to this node. */
  readonly attachDetach: 'controller' | 'kubelet';
  /** Where its server answers; asked each time the status is made. */
  readonly kubeletPort: () => number;
  /** The level of Kubernetes that is claimed, such as v1.36.4. */
  readonly kubeletVersion: string;
  /** Go's name for it: amd64, arm64. */
  readonly architecture: string;
  readonly maxPods: number;
  /** What pods may not have: systemReserved and kubeReserved as they are written. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /** How many CPUs reservedSystemCPUs names; they go before any amount that is reserved. 0 for none. */
  readonly reservedCpus: number;
  /** Hard thresholds of eviction: what is below them is no pod's to have. */
  readonly hardEviction: {
    readonly memory?: ThresholdValue | undefined;
    readonly nodefs?: ThresholdValue | undefined;
  };
  /** Whether the disk is counted among what pods may have; without it there is no capacity to miss. */
  readonly localStorage: 'counted' | 'not-counted';
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  readonly leaseDurationSeconds: number;
  /** How many images are told at most; -1 for all. */
  readonly maxImages: number;
  /** Features the scheduler may count on; sorted by us. */
  readonly declaredFeatures: readonly string[];
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** The name of the node: what is wished, else the machine's own. Throws NODE_SETTINGS where neither is a name. */
export function nodeNameOf(override: string, hostname: string): string {
  const name = (override.trim() || hostname.trim()).toLowerCase();
  if (name === '') {
    throw refusal([
      `the machine must have a host name, or one must be given with --hostname-override: current value is ""`,
    ]);
  }
  if (name.length > 253 || !name.split('.').every((part) => dnsLabel.test(part))) {
    throw refusal([`its name must be a DNS name: current value is ${JSON.stringify(name)}`]);
  }
  return name;
}

/** Throws NODE_SETTINGS that names all that no node can have. */
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
  return new KubelingError('NODE_SETTINGS', `Cannot be a node as ${problems.join('; ')}`);
}
