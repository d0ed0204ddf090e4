import type { Node, NodeFeatures, NodeRuntimeHandler, NodeStatus, NodeSystemInfo } from '../kinds/index.ts';
import { apiTime, describeError, type Instant } from '../lib/index.ts';
import { nodeAddresses, providedIpAnnotation, providedIps } from './addresses.ts';
import { nodeAmounts } from './amounts.ts';
import { nodeConditions } from './conditions.ts';
import type { NodeEvent, RuntimeFacts } from './inputs.ts';
import type { NodeFacts } from './node-facts.ts';
import { assertedLabels } from './node-object.ts';
import type { NodeSettings } from './settings.ts';

export interface ComputedNode {
  readonly node: Node;
  /** To be published after the Node was written, and not before. */
  readonly events: readonly NodeEvent[];
  /** Facts that could not be determined and stay unchanged. */
  readonly problems: readonly string[];
}

export interface ComputeOptions {
  readonly settings: NodeSettings;
  readonly facts: NodeFacts;
  readonly now: Instant;
  /** Whether the devices of the Node object are outdated. */
  readonly extended?: 'kept' | 'zeroed' | undefined;
}

/**
 * Computes the desired Node from the current one and the facts. Fields of other owners stay. Pure.
 */
export function computeNode(before: Node, options: ComputeOptions): ComputedNode {
  const { settings, facts } = options;
  const old = before.status ?? {};
  const addresses = decidedAddresses(old, options);
  const amounts = nodeAmounts(settings, {
    machine: facts.machine,
    devices: facts.devices,
    before: { capacity: old.capacity ?? {}, allocatable: old.allocatable ?? {} },
    extended: options.extended ?? 'kept',
  });
  const { conditions, events } = nodeConditions(old.conditions ?? [], {
    nodeName: settings.name,
    now: apiTime(options.now),
    problems: facts.problems,
    warnings: facts.warnings,
    pressures: facts.pressures,
    capacity: amounts.capacity,
    requiredCapacity: requiredCapacity(settings),
  });
  const status: NodeStatus = {
    ...old,
    ...addresses.fields,
    ...amounts,
    conditions,
    nodeInfo: systemInfo(old.nodeInfo, options),
    daemonEndpoints: { kubeletEndpoint: { Port: settings.kubeletPort() } },
    images: facts.images,
    ...runtimeFields(facts.runtime),
    ...(facts.volumesInUse === undefined ? {} : { volumesInUse: facts.volumesInUse }),
    ...declared(settings),
  };
  return {
    node: { ...before, metadata: metadataOf(before, settings), status },
    events: [...events, ...rebooted(old, options)],
    problems: addresses.problems,
  };
}

function requiredCapacity({ localStorage }: NodeSettings): readonly string[] {
  return ['cpu', 'memory', 'pods', ...(localStorage === 'counted' ? ['ephemeral-storage'] : [])];
}

function decidedAddresses(old: NodeStatus, { settings, facts }: ComputeOptions) {
  try {
    return {
      fields: { addresses: nodeAddresses(settings, facts.addresses, old.addresses ?? []) },
      problems: [],
    };
  } catch (error) {
    return { fields: {}, problems: [describeError(error)] };
  }
}

function metadataOf(before: Node, settings: NodeSettings): NonNullable<Node['metadata']> {
  const { [providedIpAnnotation]: _, ...others } = before.metadata?.annotations ?? {};
  const ips = providedIps(settings);
  const annotations = ips === undefined ? others : { ...others, [providedIpAnnotation]: ips };
  return {
    ...before.metadata,
    annotations,
    labels: { ...before.metadata?.labels, ...assertedLabels(settings) },
  };
}

function systemInfo(old: NodeSystemInfo | undefined, { settings, facts }: ComputeOptions): NodeSystemInfo {
  const { system, runtime, machine } = facts;
  const swap = machine?.swap ?? old?.swap?.capacity ?? 0;
  return {
    machineID: system.machineId,
    systemUUID: system.systemUuid,
    bootID: system.bootId,
    kernelVersion: system.kernelVersion,
    osImage: system.osImage,
    containerRuntimeVersion:
      runtime === undefined
        ? (old?.containerRuntimeVersion ?? 'unknown://Unknown')
        : `${runtime.name}://${runtime.version || 'Unknown'}`,
    kubeletVersion: settings.kubeletVersion,
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: settings.architecture,
    ...(swap > 0 ? { swap: { capacity: swap } } : {}),
  };
}

/** Known fields stay until the runtime has responded. */
function runtimeFields(runtime: RuntimeFacts | undefined): Pick<NodeStatus, 'runtimeHandlers' | 'features'> {
  if (runtime === undefined) return {};
  const features: NodeFeatures | undefined =
    runtime.supplementalGroupsPolicy === undefined
      ? undefined
      : { supplementalGroupsPolicy: runtime.supplementalGroupsPolicy };
  const handlers = runtime.handlers
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(
      ({ name, recursiveReadOnlyMounts, userNamespaces }): NodeRuntimeHandler => ({
        name,
        features: { recursiveReadOnlyMounts, userNamespaces },
      }),
    );
  return {
    runtimeHandlers: handlers.length === 0 ? undefined : handlers,
    ...(features === undefined ? {} : { features }),
  };
}

function declared({ declaredFeatures }: NodeSettings): Pick<NodeStatus, 'declaredFeatures'> {
  return { declaredFeatures: declaredFeatures.length === 0 ? undefined : declaredFeatures.toSorted() };
}

function rebooted(old: NodeStatus, { settings, facts }: ComputeOptions): NodeEvent[] {
  const { bootId } = facts.system;
  const before = old.nodeInfo?.bootID ?? '';
  if (before === '' || bootId === '' || before === bootId) return [];
  const message = `Node ${settings.name} has been rebooted, boot id: ${bootId}`;
  return [{ type: 'Warning', reason: 'Rebooted', message }];
}
