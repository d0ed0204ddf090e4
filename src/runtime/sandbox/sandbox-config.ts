import type { LinuxPodSandboxConfig, PodSandboxConfig, UserNamespace } from '../../cri/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod, type PodEvent } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { sandboxLabels } from '../containers/labels.ts';
import {
  type LinuxNode,
  overheadResources,
  type ResourceGrants,
  sandboxResources,
} from '../containers/linux-resources.ts';
import { supplementalGroups, supplementalGroupsPolicy } from '../containers/security-context.ts';
import { podLogDirectory } from '../logs/log-paths.ts';
import { type DnsSettings, podDns } from './dns.ts';
import { kernelHostname, podHostname } from './hostname.ts';
import { podNamespaces } from './namespaces.ts';
import { portMappings } from './port-mappings.ts';
import { dottedSysctl } from './sysctls.ts';

export interface SandboxInputs {
  readonly attempt: number;
  readonly podLogsDir: string;
  /** The pod's own cgroup. */
  readonly cgroupParent: string;
  readonly dns: DnsSettings;
  readonly node: LinuxNode;
  readonly grants?: ResourceGrants;
  /** Groups that own the pod's volumes. */
  readonly extraGroups?: readonly number[];
  /** For pods that have users of their own. */
  readonly userNamespace?: MessageInit<UserNamespace>;
}

export interface PlannedSandboxConfig {
  readonly config: MessageInit<PodSandboxConfig>;
  readonly events: readonly PodEvent[];
  readonly nodeEvents: readonly PodEvent[];
}

/** Throws SANDBOX_CONFIG with the message for the event that says why there is no sandbox. */
export function sandboxConfig(pod: Pod, inputs: SandboxInputs): PlannedSandboxConfig {
  const { name, namespace, uid } = pod.metadata;
  const { config: dnsConfig, events, nodeEvents } = podDns(pod, inputs.dns);
  const config = {
    metadata: { name, namespace, uid, attempt: inputs.attempt },
    hostname: hostnameOf(pod, inputs),
    logDirectory: podLogDirectory(inputs.podLogsDir, pod),
    dnsConfig,
    portMappings: portMappings(pod),
    labels: sandboxLabels(pod),
    annotations: pod.metadata.annotations ?? {},
    linux: linuxConfig(pod, inputs),
  };
  return { config, events, nodeEvents };
}

/** A pod on the host's network has the host's name. */
function hostnameOf(pod: Pod, { dns }: SandboxInputs): string {
  if (pod.spec.hostNetwork === true) return '';
  return kernelHostname(pod, podHostname(pod, dns.clusterDomain));
}

function linuxConfig(pod: Pod, inputs: SandboxInputs): MessageInit<LinuxPodSandboxConfig> {
  const context = pod.spec.securityContext;
  const sysctls = (context?.sysctls ?? []).map(({ name, value }) => [dottedSysctl(name), value]);
  return {
    cgroupParent: inputs.cgroupParent,
    sysctls: Object.fromEntries(sysctls),
    resources: sandboxResources(pod, inputs.node, inputs.grants),
    overhead: overheadResources(pod, inputs.node),
    securityContext: {
      namespaceOptions: podNamespaces(pod, inputs.userNamespace),
      privileged: hasPrivilegedContainer(pod),
      // Containers may ask for more or less; the sandbox's own process needs no more than this.
      seccomp: { profileType: 'RuntimeDefault' },
      runAsUser: asValue(context?.runAsUser),
      runAsGroup: asValue(context?.runAsGroup),
      supplementalGroups: supplementalGroups(context, inputs.extraGroups ?? [], 'second'),
      supplementalGroupsPolicy: supplementalGroupsPolicy(context),
      selinuxOptions: context?.seLinuxOptions,
    },
  };
}

function asValue(id: number | undefined): { readonly value: bigint } | undefined {
  return id === undefined ? undefined : { value: BigInt(id) };
}

function hasPrivilegedContainer(pod: Pod): boolean {
  const all = [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
  return all.some(({ securityContext }) => securityContext?.privileged === true);
}
