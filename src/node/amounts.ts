import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  milliQuantity,
  type Quantity,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
} from '../lib/index.ts';
import { hugePageResource, isHugePages, readResources } from '../pods/index.ts';
import type { DeviceAmounts, MachineCapacity } from './inputs.ts';
import type { NodeSettings } from './settings.ts';

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
  /** Undefined when the machine is unreadable. */
  readonly machine: MachineCapacity | undefined;
  readonly devices: DeviceAmounts | undefined;
  /** The amounts of the Node object; resources of other owners stay. */
  readonly before: Partial<NodeAmounts>;
  /** Whether the devices of the Node object are outdated. */
  readonly extended: 'kept' | 'zeroed';
}

/** Computes capacity and allocatable. Equal amounts keep their spelling. */
export function nodeAmounts(settings: AmountSettings, facts: AmountFacts): NodeAmounts {
  const own = new Map([...machineAmounts(settings, facts.machine), ...deviceAmounts(facts.devices)]);
  const foreign = Object.entries(facts.before.capacity ?? {})
    // Otherwise a page size that no longer exists would be offered forever.
    .filter(([name]) => !own.has(name) && !isHugePages(name))
    .map(([name, text]): [string, Quantity] => [name, foreignAmount(name, text, facts.extended)]);
  const capacity = new Map([...foreign, ...own]);
  const reserved = reservations(settings, capacity);
  const left = new Map(Array.from(capacity, ([name, all]) => [name, minus(all, reserved.get(name))]));
  const allocatable = new Map([...left, ...readResources(facts.devices?.allocatable)]);
  return {
    capacity: written(capacity, facts.before.capacity),
    allocatable: written(withoutHugePages(allocatable, capacity), facts.before.allocatable),
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

function deviceAmounts(devices: DeviceAmounts | undefined): readonly (readonly [string, Quantity])[] {
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

/** Extended resources: with a domain other than kubernetes.io. */
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

/** Never negative, in the format of the minuend. */
function minus(all: Quantity, kept: Quantity | undefined): Quantity {
  if (kept === undefined) return all;
  const { nanos } = subtractQuantities(all, kept);
  return { nanos: nanos < 0n ? 0n : nanos, format: all.format };
}

/** Memory of huge pages is not available as memory. */
function withoutHugePages(
  allocatable: ReadonlyMap<string, Quantity>,
  capacity: ReadonlyMap<string, Quantity>,
): ReadonlyMap<string, Quantity> {
  const memory = allocatable.get('memory');
  if (memory === undefined) return allocatable;
  const pages = [...capacity].filter(([name]) => isHugePages(name)).map(([, amount]) => amount);
  return new Map([...allocatable, ['memory', pages.reduce(minus, memory)]]);
}

/** Another spelling of the same amount would cause a patch. */
function written(amounts: ReadonlyMap<string, Quantity>, before: Written = {}): Written {
  return Object.fromEntries(
    Array.from(amounts, ([name, amount]) => {
      const known = Object.hasOwn(before, name) ? tryParseQuantity(before[name] ?? '') : undefined;
      const isSame = known !== undefined && compareQuantities(known, amount) === 0;
      return [name, isSame ? (before[name] ?? '') : formatQuantity(amount)];
    }),
  );
}
