import type { Node, NodeFeatures, NodeRuntimeHandler, NodeStatus, NodeSystemInfo } from '../kinds/index.ts';
import {
  addQuantities,
  apiTime,
  compareQuantities,
  describeError,
  formatQuantity,
  type Instant,
  milliQuantity,
  type Quantity,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
} from '../lib/index.ts';
import { hugePageResource, isHugePages, readResources } from '../pods/index.ts';
import { nodeAddresses, providedIpAnnotation, providedIps } from './addresses.ts';
import { nodeConditions } from './conditions.ts';
import type { DeviceCapacity, MachineCapacity, NodeEventInput, RuntimeFacts } from './inputs.ts';
import type { NodeFacts } from './node-facts.ts';
import { assertedLabels } from './node-object.ts';
import type { NodeSettings } from './settings.ts';

export interface ComputedNode {
  readonly node: Node;
  /** Events to publish, but only after the Node was written. */
  readonly events: readonly NodeEventInput[];
  /** The names of facts that could not be read, whose Node fields stay unchanged. */
  readonly problems: readonly string[];
}

export interface ComputeOptions {
  readonly settings: NodeSettings;
  readonly facts: NodeFacts;
  readonly now: Instant;
  /**
   * `kept` keeps extended resources of the Node object; `zeroed` sets them to zero, because they
   * are from a previous boot.
   */
  readonly extended?: 'kept' | 'zeroed' | undefined;
}

/**
 * Computes the desired Node from the current one and the facts. Fields of other owners are kept.
 * Has no side effects.
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

/** Runtime fields of the Node are kept until the container runtime has responded. */
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

function rebooted(old: NodeStatus, { settings, facts }: ComputeOptions): NodeEventInput[] {
  const { bootId } = facts.system;
  const before = old.nodeInfo?.bootID ?? '';
  if (before === '' || bootId === '' || before === bootId) return [];
  const message = `Node ${settings.name} has been rebooted, boot id: ${bootId}`;
  return [{ type: 'Warning', reason: 'Rebooted', message }];
}

type Written = Readonly<Record<string, string>>;

export interface NodeAmounts {
  readonly capacity: Written;
  readonly allocatable: Written;
}

export type AmountSettings = Pick<
  NodeSettings,
  'maxPods' | 'reserved' | 'reservedCpus' | 'hardEviction' | 'localStorage'
>;

export interface AmountFacts {
  /** The capacity of the machine; undefined when it is unreadable. */
  readonly machine: MachineCapacity | undefined;
  readonly devices: DeviceCapacity | undefined;
  /** Capacity and allocatable of the Node object; resources of other owners are kept. */
  readonly before: Partial<NodeAmounts>;
  /**
   * `kept` keeps extended resources of the Node object; `zeroed` sets them to zero, because they
   * are from a previous boot.
   */
  readonly extended: 'kept' | 'zeroed';
}

/**
 * Computes capacity and allocatable. A quantity that is equal to the current one keeps its
 * spelling.
 */
export function nodeAmounts(settings: AmountSettings, facts: AmountFacts): NodeAmounts {
  const own = new Map([...machineAmounts(settings, facts.machine), ...deviceAmounts(facts.devices)]);
  const foreign = Object.entries(facts.before.capacity ?? {})
    // Huge page sizes that the machine no longer has are dropped from the capacity.
    .filter(([name]) => !own.has(name) && !isHugePages(name))
    .map(([name, text]): [string, Quantity] => [name, foreignAmount(name, text, facts.extended)]);
  const capacity = new Map([...foreign, ...own]);
  const reserved = reservations(settings, capacity);
  const left = new Map(Array.from(capacity, ([name, all]) => [name, minus(all, reserved.get(name))]));
  const allocatable = new Map([...left, ...readResources(facts.devices?.allocatable)]);
  return {
    capacity: toQuantities(capacity, facts.before.capacity),
    allocatable: toQuantities(withoutHugePages(allocatable, capacity), facts.before.allocatable),
  };
}

function machineAmounts(
  settings: AmountSettings,
  machine: MachineCapacity | undefined,
): Map<string, Quantity> {
  const { maxPods, localStorage } = settings;
  if (machine === undefined) {
    return new Map([
      ['cpu', quantityOf(0)],
      ['memory', quantityOf(0, 'BinarySI')],
      ['pods', quantityOf(maxPods)],
    ]);
  }
  const { ephemeralStorage } = machine;
  return new Map([
    ['cpu', milliQuantity(Math.trunc(machine.milliCpu))],
    ['memory', bytes(machine.memory)],
    ['pods', quantityOf(maxPods)],
    ...(localStorage === 'counted' && ephemeralStorage !== undefined
      ? ([['ephemeral-storage', bytes(ephemeralStorage)]] as const)
      : []),
    ...Array.from(machine.hugePages, ([size, amount]) => [hugePageResource(size), bytes(amount)] as const),
  ]);
}

function bytes(amount: number): Quantity {
  return quantityOf(Math.trunc(amount), 'BinarySI');
}

function deviceAmounts(devices: DeviceCapacity | undefined): readonly (readonly [string, Quantity])[] {
  if (devices === undefined) return [];
  return [
    ...devices.removed.map((name) => [name, quantityOf(0)] as const),
    ...readResources(devices.capacity),
  ];
}

function foreignAmount(name: string, text: string, extended: AmountFacts['extended']): Quantity {
  const known = tryParseQuantity(text) ?? quantityOf(0);
  return extended === 'zeroed' && isExtended(name) ? quantityOf(0) : known;
}

/** Whether the resource is an extended one: with a domain other than kubernetes.io. */
export function isExtended(name: string): boolean {
  const [domain, rest] = name.split('/');
  return (
    rest !== undefined && !/(^|\.)kubernetes\.io$/.test(domain ?? '') && !domain?.startsWith('requests.')
  );
}

function reservations(
  { reserved, reservedCpus, hardEviction }: AmountSettings,
  capacity: ReadonlyMap<string, Quantity>,
): ReadonlyMap<string, Quantity> {
  const sum = new Map<string, Quantity>();
  const add = (name: string, amount: Quantity) =>
    sum.set(name, addQuantities(sum.get(name) ?? quantityOf(0), amount));
  for (const list of reserved) for (const [name, amount] of readResources(list)) add(name, amount);
  if (reservedCpus > 0) sum.set('cpu', quantityOf(reservedCpus));
  for (const [name, threshold] of [
    ['memory', hardEviction.memory],
    ['ephemeral-storage', hardEviction.nodefs],
  ] as const) {
    const all = capacity.get(name);
    if (threshold === undefined || all === undefined) continue;
    add(name, 'quantity' in threshold ? threshold.quantity : share(all, threshold.percent));
  }
  return sum;
}

function share(all: Quantity, percent: number): Quantity {
  return quantityOf(Math.trunc((Number(quantityValue(all)) * percent) / 100), all.format);
}

/** The difference of two quantities, at least zero, in the format of the first one. */
function minus(all: Quantity, reserved: Quantity | undefined): Quantity {
  if (reserved === undefined) return all;
  const { nanos } = subtractQuantities(all, reserved);
  return { nanos: nanos < 0n ? 0n : nanos, format: all.format };
}

/** Memory reserved for huge pages is not available as normal memory. */
function withoutHugePages(
  allocatable: ReadonlyMap<string, Quantity>,
  capacity: ReadonlyMap<string, Quantity>,
): ReadonlyMap<string, Quantity> {
  const memory = allocatable.get('memory');
  if (memory === undefined) return allocatable;
  const pages = [...capacity].filter(([name]) => isHugePages(name)).map(([, amount]) => amount);
  return new Map([...allocatable, ['memory', pages.reduce(minus, memory)]]);
}

/**
 * Keeps the current spelling of an equal quantity, because another spelling would cause a patch.
 */
function toQuantities(amounts: ReadonlyMap<string, Quantity>, before: Written = {}): Written {
  return Object.fromEntries(
    Array.from(amounts, ([name, amount]) => {
      const known = Object.hasOwn(before, name) ? tryParseQuantity(before[name] ?? '') : undefined;
      const isSame = known !== undefined && compareQuantities(known, amount) === 0;
      return [name, isSame ? (before[name] ?? '') : formatQuantity(amount)];
    }),
  );
}
