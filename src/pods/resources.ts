import type { Container, ResourceRequirements } from '../kinds/index.ts';
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantityValue,
  tryParseQuantity,
} from '../lib/index.ts';
import type { Pod } from './pod.ts';
import { initContainersOf, isSidecar } from './pod.ts';

/** Amounts by resource name. A missing name is not the same as zero. */
export type ResourceList = ReadonlyMap<string, Quantity>;

/** Whether requests or limits are summed. */
export type ResourceSide = 'requests' | 'limits';

export interface PodSumOptions {
  /** Whether the overhead of the pod's runtime class is included; yes by default. */
  readonly overhead?: 'included' | 'excluded';
}

type WrittenList = Readonly<Record<string, string>> | undefined;

/**
 * The amounts of a resource list. Throws QUANTITY_INVALID for an amount that validation would have
 * rejected.
 */
export function readResources(written: WrittenList): ResourceList {
  return new Map(Object.entries(written ?? {}).map(([name, text]) => [name, parseQuantity(text)]));
}

/** The requests that the scheduler reserves for the pod. */
export function podRequests(pod: Pod, { overhead = 'included' }: PodSumOptions = {}): ResourceList {
  const sum = withPodLevel(containerSum(pod, 'requests'), pod.spec.resources, 'requests');
  return overhead === 'excluded' ? sum : add(sum, readResources(pod.spec.overhead));
}

/** The limits of a pod. The overhead is added only to resources that have a limit. */
export function podLimits(pod: Pod, { overhead = 'included' }: PodSumOptions = {}): ResourceList {
  const sum = withPodLevel(containerSum(pod, 'limits'), pod.spec.resources, 'limits');
  if (overhead === 'excluded') return sum;
  const extra = [...readResources(pod.spec.overhead)].filter(([name]) => isPositive(sum.get(name)));
  return add(sum, new Map(extra));
}

/**
 * The resources of all containers: regular ones and sidecars together, or an init container with
 * the sidecars started before it, whichever is more for each resource.
 */
export function containerSum(pod: Pod, side: ResourceSide): ResourceList {
  const own = (container: Container) => readResources(container.resources?.[side]);
  const running = new Map<string, Quantity>();
  for (const container of pod.spec.containers) addTo(running, own(container));
  const sidecars = new Map<string, Quantity>();
  const peak = new Map<string, Quantity>();
  for (const container of initContainersOf(pod)) {
    const list = own(container);
    // The sum of the sidecars only grows, so the peak must be raised only for the resources that
    // the current container requests.
    for (const [name, amount] of list) raise(peak, name, plus(sidecars.get(name), amount));
    if (!isSidecar(container)) continue;
    addTo(running, list);
    addTo(sidecars, list);
  }
  for (const [name, amount] of peak) raise(running, name, amount);
  return running;
}

/** Replaces the sums of the containers by the pod-level amounts. */
function withPodLevel(
  sum: ResourceList,
  resources: ResourceRequirements | undefined,
  side: ResourceSide,
): ResourceList {
  const own = [...readResources(resources?.[side])].filter(([name]) => isPodLevelResource(name));
  return new Map([...sum, ...own]);
}

/** The resources that can be set at the pod level. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name);
}

export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

/** Whether the pod has pod-level resources. */
export function hasPodLevelResources(pod: Pod, side: ResourceSide | 'any' = 'any'): boolean {
  const { requests, limits } = pod.spec.resources ?? {};
  const lists = side === 'any' ? [requests, limits] : [pod.spec.resources?.[side]];
  return lists.some((list) => Object.keys(list ?? {}).some(isPodLevelResource));
}

export function addResources(...lists: readonly ResourceList[]): ResourceList {
  const total = new Map<string, Quantity>();
  for (const list of lists) addTo(total, list);
  return total;
}

function add(a: ResourceList, b: ResourceList): ResourceList {
  return addResources(a, b);
}

/** Adds the amounts in place, because the containers of a pod may name thousands of resources. */
function addTo(total: Map<string, Quantity>, list: ResourceList): void {
  for (const [name, amount] of list) total.set(name, plus(total.get(name), amount));
}

function plus(before: Quantity | undefined, amount: Quantity): Quantity {
  return before === undefined ? amount : addQuantities(before, amount);
}

function raise(peaks: Map<string, Quantity>, name: string, amount: Quantity): void {
  const before = peaks.get(name);
  if (before === undefined || compareQuantities(amount, before) > 0) peaks.set(name, amount);
}

export function isPositive(amount: Quantity | undefined): amount is Quantity {
  return amount !== undefined && amount.nanos > 0n;
}

/** A CPU amount in thousandths of a core; 0 when not set. */
export function milliCpuOf(list: ResourceList): bigint {
  const amount = list.get('cpu');
  return amount === undefined ? 0n : quantityMilliValue(amount);
}

/** A memory amount in bytes; 0 when not set. */
export function memoryOf(list: ResourceList): bigint {
  const amount = list.get('memory');
  return amount === undefined ? 0n : quantityValue(amount);
}

/** Converts CPU amounts, in thousandths of a core, to cgroup values and back. */

const fewestShares = 2n;
const mostShares = 262_144n;
const shortestQuotaUs = 1_000n;

/** Converts a CPU amount to CPU shares, the CPU weight in cgroups v1: 1024 per core. */
export function cpuShares(milliCpu: bigint): bigint {
  const shares = (milliCpu * 1024n) / 1000n;
  if (shares < fewestShares) return fewestShares;
  return shares > mostShares ? mostShares : shares;
}

/** The CFS quota of an amount in microseconds per period; 0 for no limit. */
export function cpuQuotaUs(milliCpu: bigint, periodUs: bigint): bigint {
  if (milliCpu === 0n) return 0n;
  const quota = (milliCpu * periodUs) / 1000n;
  return quota < shortestQuotaUs ? shortestQuotaUs : quota;
}

/**
 * The CPU amount of a cgroup weight; at most a thousandth of a core less than the amount from which
 * the weight was computed.
 */
export function sharesToMilliCpu(shares: number): number {
  return shares < fewestShares ? 0 : Math.ceil((shares * 1000) / 1024);
}

/**
 * Converts a CFS quota to the CPU limit in thousandths of a core; the quota -1 means no limit and
 * becomes 0.
 */
export function quotaUsToMilliCpu(quotaUs: number, periodUs: number): number {
  return quotaUs === -1 ? 0 : Math.floor((quotaUs * 1000) / periodUs);
}

/**
 * Returns the amounts of the huge page resources in the list, in bytes, by page size as in cgroup
 * file names.
 */
export function hugePageAmounts(list: ResourceList): ReadonlyMap<string, bigint> {
  return new Map(
    [...list].flatMap(([name, amount]): [string, bigint][] => {
      const size = isHugePages(name) ? tryParseQuantity(name.slice('hugepages-'.length)) : undefined;
      return size === undefined ? [] : [[hugePageSizeName(quantityValue(size)), quantityValue(amount)]];
    }),
  );
}

const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const;

/** A page size as in cgroup file names: 2097152 is 2MB. */
export function hugePageSizeName(bytes: bigint): string {
  let [size, unit] = [bytes, 0];
  while (size > 0n && size % 1024n === 0n && unit < units.length - 1) {
    size /= 1024n;
    unit++;
  }
  return `${size}${units[unit]}`;
}

/** Converts a page size as in cgroup file names to its resource name: 2MB becomes hugepages-2Mi. */
export function hugePageResource(size: string): string {
  return `hugepages-${size.replace(/B$/, '').replace(/[KMGTP]$/, '$&i')}`;
}
