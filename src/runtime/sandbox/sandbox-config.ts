import { isIPv6 } from 'node:net';
import type {
  LinuxPodSandboxConfig,
  NamespaceOption,
  PodSandboxConfig,
  PortMapping,
  Protocol,
  UserNamespace,
} from '../../cri/index.ts';
import type { Container, ContainerPort } from '../../kinds/index.ts';
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
import { dottedSysctl } from './sysctls.ts';

export interface SandboxInputs {
  readonly attempt: number;
  readonly podLogsDir: string;
  /** Parent path of the sandbox's cgroup, which is the pod's cgroup. */
  readonly cgroupParent: string;
  readonly dns: DnsSettings;
  readonly node: LinuxNode;
  readonly grants?: ResourceGrants;
  /** Supplementary groups that own the pod's volumes. */
  readonly extraGroups?: readonly number[];
  /** User namespace of the pod; undefined when it uses the host's. */
  readonly userNamespace?: MessageInit<UserNamespace>;
}

export interface PlannedSandboxConfig {
  readonly config: MessageInit<PodSandboxConfig>;
  readonly events: readonly PodEvent[];
  readonly nodeEvents: readonly PodEvent[];
}

/**
 * Computes the CRI config of the pod's sandbox. Throws SANDBOX_CONFIG with the message for the
 * FailedCreatePodSandBox event.
 */
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

/** Hostname of the sandbox; empty on the host network, where the pod has the host's name. */
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
      // This seccomp profile confines only the sandbox process; containers have their own profiles.
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

/** Namespaces of a pod's sandbox; the configs of its containers repeat them. */
export function podNamespaces(
  { spec }: Pod,
  userNamespace?: MessageInit<UserNamespace>,
): MessageInit<NamespaceOption> {
  return {
    network: spec.hostNetwork === true ? 'NODE' : 'POD',
    ipc: spec.hostIPC === true ? 'NODE' : 'POD',
    pid: spec.hostPID === true ? 'NODE' : spec.shareProcessNamespace === true ? 'POD' : 'CONTAINER',
    usernsOptions: userNamespace,
  };
}

/**
 * Namespaces of a container; an ephemeral container can join the process namespace of its target
 * container.
 */
export function containerNamespaces(
  namespaces: MessageInit<NamespaceOption>,
  targetId: string | undefined,
): MessageInit<NamespaceOption> {
  if (targetId === undefined || namespaces.pid !== 'CONTAINER') return namespaces;
  return { ...namespaces, pid: 'TARGET', targetId };
}

/**
 * Port mappings of all regular containers; ports of one container with the same name are mapped
 * once.
 */
export function portMappings({ spec }: Pod): readonly MessageInit<PortMapping>[] {
  return spec.containers.flatMap(mappingsOf);
}

function mappingsOf({ ports = [] }: Container): MessageInit<PortMapping>[] {
  const byName = new Map<string, ContainerPort>();
  for (const port of ports) {
    const name = keyOf(port);
    if (!byName.has(name)) byName.set(name, port);
  }
  return Array.from(byName.values(), ({ containerPort, hostPort = 0, hostIP = '', protocol = 'TCP' }) => ({
    containerPort,
    hostPort,
    hostIp: hostIP,
    protocol: protocols.get(protocol) ?? 'TCP',
  }));
}

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ['TCP', 'TCP'],
  ['UDP', 'UDP'],
  ['SCTP', 'SCTP'],
]);

/**
 * Key to recognize repeated ports; unnamed ports are distinguished by all fields, including the
 * address family.
 */
function keyOf({
  name = '',
  hostIP = '',
  protocol = '',
  containerPort,
  hostPort = 0,
}: ContainerPort): string {
  if (name !== '') return name;
  const family = hostIP === '' ? 'any' : isIPv6(hostIP) ? 'v6' : 'v4';
  return `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
}
