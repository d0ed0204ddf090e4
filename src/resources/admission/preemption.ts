import type { PodStatus } from '../../kinds/index.ts';
import {
  isCriticalPod,
  type Pod,
  podRequests,
  type QosClass,
  qosClass,
  readResources,
} from '../../pods/index.ts';
import { unitsOf } from './amounts.ts';
import { type Shortage, shortfall } from './fit.ts';

/** How much of each resource must still be released so that the pod fits. */
type Needs = ReadonlyMap<string, bigint>;

export type VictimChoice =
  | { readonly found: true; readonly victims: readonly Pod[] }
  /** The resources of which all candidates together cannot release enough. */
  | { readonly found: false; readonly lacking: string };

/** The QoS classes from the highest to the lowest. */
const highestQosFirst: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/**
 * Chooses the victims that must terminate so that the pod fits: as few as possible, and those of
 * lower QoS classes first. Pods of a higher QoS class are chosen only for resources that all pods
 * of lower classes together cannot release. Of two equal candidates, the one with the smaller
 * requests is chosen.
 */
export function chooseVictims(pod: Pod, others: readonly Pod[], short: readonly Shortage[]): VictimChoice {
  const needs: Needs = new Map(short.map((one) => [one.resource, shortfall(one)]));
  const candidates = others.filter((other) => mayPreempt(pod, other));
  const lacking = remaining(needs, candidates);
  if (lacking.size > 0) return { found: false, lacking: formatNeeds(lacking) };
  const byClass = Map.groupBy(candidates, qosClass);
  let cheaper: readonly Pod[] = candidates;
  let victims: readonly Pod[] = [];
  for (const name of highestQosFirst) {
    const ofClass = byClass.get(name) ?? [];
    cheaper = cheaper.filter((other) => !ofClass.includes(other));
    // Victims of lower QoS classes are first in the list, so they are also killed first.
    victims = [...closestToNeeds(ofClass, remaining(needs, [...victims, ...cheaper])), ...victims];
  }
  return { found: true, victims };
}

/**
 * Whether the pod is more important than the other pod: critical pods are more important than all
 * others, then the priority decides.
 */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true;
  const [own, its] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && its !== undefined && own > its;
}

/**
 * Repeatedly chooses the pod whose requests come closest to what must still be released of each
 * resource.
 */
function closestToNeeds(pods: readonly Pod[], needs: Needs): readonly Pod[] {
  const chosen: Pod[] = [];
  let left = pods;
  let still = needs;
  while (still.size > 0 && left.length > 0) {
    const goal = still;
    const best = left.reduce((one, other) => (isBetter(other, one, goal) ? other : one));
    chosen.push(best);
    left = left.filter((other) => other !== best);
    still = remaining(still, [best]);
  }
  return chosen;
}

function isBetter(one: Pod, than: Pod, needs: Needs): boolean {
  const difference = distance(one, needs) - distance(than, needs);
  return difference < 0 || (difference === 0 && isSmaller(one, than));
}

/**
 * Each insufficient resource counts by the share that would still be missing, so that memory in
 * bytes does not outweigh CPU in cores.
 */
function distance(pod: Pod, needs: Needs): number {
  let sum = 0;
  for (const [resource, need] of needs) {
    const open = need - requestOf(pod, resource);
    if (open > 0n) sum += (Number(open) / Number(need)) ** 2;
  }
  return sum;
}

function isSmaller(one: Pod, than: Pod): boolean {
  for (const resource of ['memory', 'cpu']) {
    const [a, b] = [requestOf(one, resource), requestOf(than, resource)];
    if (a !== b) return a < b;
  }
  return false;
}

function remaining(needs: Needs, pods: readonly Pod[]): Needs {
  const open = [...needs].map(([resource, need]) => {
    const freed = pods.reduce((sum, pod) => sum + requestOf(pod, resource), 0n);
    return [resource, need - freed] as const;
  });
  return new Map(open.filter(([, need]) => need > 0n));
}

/**
 * Returns how much of a resource the pod requests, including the overhead of the RuntimeClass. Of
 * the resource `pods`, every pod requests 1.
 */
function requestOf(pod: Pod, resource: string): bigint {
  if (resource === 'pods') return 1n;
  const own = podRequests(pod, { overhead: 'excluded' }).get(resource);
  const overhead = readResources(pod.spec.overhead).get(resource);
  const amount = own === undefined ? 0n : unitsOf(resource, own);
  return amount === 0n || overhead === undefined ? amount : amount + unitsOf(resource, overhead);
}

function formatNeeds(needs: Needs): string {
  return `[${[...needs].map(([resource, need]) => `(res: ${resource}, q: ${need}), `).join('')}]`;
}

export const preemptedEvent = {
  type: 'Warning',
  reason: 'Preempting',
  message: 'Preempted in order to admit critical pod',
} as const;

const disruption = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'TerminationByKubelet',
  message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
} as const;

/** The status of a pod that was killed so that a critical pod can be admitted. */
export function preemptedStatus(status: PodStatus): PodStatus {
  const { reason, message } = preemptedEvent;
  const conditions = (status.conditions ?? []).filter(({ type }) => type !== disruption.type);
  return { ...status, phase: 'Failed', reason, message, conditions: [...conditions, disruption] };
}
