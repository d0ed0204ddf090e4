import type { ContainerConfig, Device, Mount, Signal, UserNamespace } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { containerLogPath } from '../logs/log-paths.ts';
import { containerNamespaces, podNamespaces } from '../sandbox/sandbox-config.ts';
import { containerEnvironment, type EnvironmentInputs, textLookup, type Variable } from './environment.ts';
import { ExpansionBudget, expand } from './expansion.ts';
import { containerAnnotations, containerLabels } from './labels.ts';
import { containerResources, type LinuxNode, type ResourceGrants } from './linux-resources.ts';
import { containerMounts, type MountInputs, volumeDevices } from './mounts.ts';
import { containerSecurityContext, type SecurityInputs } from './security-context.ts';

/**
 * Devices, mounts, environment variables and annotations that the allocated devices add to the
 * container.
 */
export interface DeviceGrants {
  readonly devices?: readonly MessageInit<Device>[];
  readonly cdiDevices?: readonly string[];
  readonly variables?: readonly Variable[];
  readonly mounts?: readonly MessageInit<Mount>[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ContainerInputs {
  readonly restartCount: number;
  /** The image reference that the runtime reports: a digest or an image ID. */
  readonly imageRef: string;
  readonly environment: EnvironmentInputs;
  readonly mounts: Omit<MountInputs, 'lookup' | 'budget' | 'podIps'>;
  readonly security: Omit<SecurityInputs, 'namespaces'>;
  readonly node: LinuxNode;
  readonly grants?: (ResourceGrants & DeviceGrants) | undefined;
  readonly userNamespace?: MessageInit<UserNamespace>;
  /** The ID of the container whose process namespace an ephemeral container joins. */
  readonly targetId?: string;
  readonly stopSignals?: 'honoured' | 'ignored';
}

/**
 * Builds the container config for the CRI. Throws CONTAINER_CONFIG with the message for the
 * container's waiting state.
 */
export async function containerConfig(
  pod: Pod,
  container: Container,
  inputs: ContainerInputs,
  signal: AbortSignal,
): Promise<MessageInit<ContainerConfig>> {
  const { restartCount, grants = {}, environment } = inputs;
  const budget = new ExpansionBudget();
  const own = await containerEnvironment(pod, container, environment, budget, signal);
  const variables = [...(grants.variables ?? []), ...own];
  const lookup = textLookup(variables);
  const mountInputs = { ...inputs.mounts, lookup, budget, podIps: environment.podIps };
  const mounts = await containerMounts(pod, container, mountInputs, signal);
  const expanded = (texts: readonly string[] = []) => texts.map((text) => expand(text, lookup, budget));
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image: inputs.imageRef, userSpecifiedImage: container.image ?? '' },
    command: expanded(container.command),
    args: expanded(container.args),
    workingDir: container.workingDir ?? '',
    envs: variables.map(({ name, value }) => ({ key: name, value })),
    mounts: withMappings([...(grants.mounts ?? []), ...mounts], inputs.userNamespace),
    devices: [...(grants.devices ?? []), ...volumeDevices(container, inputs.mounts.volumes)],
    CDIDevices: (grants.cdiDevices ?? []).map((name) => ({ name })),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations(pod, container, restartCount, grants.annotations),
    logPath: containerLogPath(container, restartCount),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    stopSignal: inputs.stopSignals === 'honoured' ? stopSignal(container) : undefined,
    linux: linuxConfig(pod, container, inputs),
  };
}

function linuxConfig(pod: Pod, container: Container, inputs: ContainerInputs) {
  const namespaces = containerNamespaces(podNamespaces(pod, inputs.userNamespace), inputs.targetId);
  return {
    resources: containerResources(pod, container, inputs.node, inputs.grants),
    securityContext: containerSecurityContext(pod, container, { ...inputs.security, namespaces }),
  };
}

/**
 * Adds the ID mappings of a pod with user namespace to each mount, so that files on the host keep
 * their owners.
 */
function withMappings(
  mounts: readonly MessageInit<Mount>[],
  userNamespace: MessageInit<UserNamespace> | undefined,
): readonly MessageInit<Mount>[] {
  if (userNamespace?.mode !== 'POD') return mounts;
  const { uids: uidMappings, gids: gidMappings } = userNamespace;
  return mounts.map((mount) => ({ ...mount, uidMappings, gidMappings }));
}

/**
 * Returns the stop signal from the container's spec; undefined leaves the choice to the image and
 * the runtime.
 */
function stopSignal({ lifecycle }: Container): Signal | undefined {
  const name = lifecycle?.stopSignal ?? '';
  return name === '' ? undefined : (name.replace('+', 'PLUS').replace('-', 'MINUS') as Signal);
}
