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
import { missing, type Shortage } from './fit.ts';

/** So much of each resource has still to become free. */
type Needs = ReadonlyMap<string, bigint>;

export type VictimChoice =
  | { readonly found: true; readonly victims: readonly Pod[] }
  /** What nobody could give up. */
  | { readonly found: false; readonly lacking: string };

/** From those that lose most by it to those that lose least. */
const dearestFirst: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/**
 * Which pods are to end so that the pod fits: as few as possible, and cheap ones before dear ones. A dear one goes only for
 * what all cheaper ones together cannot give. Of two that are as good the one with the smaller requests goes.
 */
export function chooseVictims(pod: Pod, others: readonly Pod[], short: readonly Shortage[]): VictimChoice {
  const needs: Needs = new Map(short.map((one) => [one.resource, missing(one)]));
  const candidates = others.filter((other) => mayPreempt(pod, other));
  const lacking = remaining(needs, candidates);
  if (lacking.size > 0) return { found: false, lacking: written(lacking) };
  const byClass = Map.groupBy(candidates, qosClass);
  let cheaper: readonly Pod[] = candidates;
  let victims: readonly Pod[] = [];
  for (const name of dearestFirst) {
    const ofClass = byClass.get(name) ?? [];
    cheaper = cheaper.filter((other) => !ofClass.includes(other));
    // Cheap ones first in the answer: they are also ended first.
    victims = [...closest(ofClass, remaining(needs, [...victims, ...cheaper])), ...victims];
  }
  return { found: true, victims };
}

/** Who matters more: the critical before all others, and among equals the one of higher priority. */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true;
  const [own, its] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && its !== undefined && own > its;
}

/** Takes, again and again, the pod that comes nearest to what is still needed. */
function closest(pods: readonly Pod[], needs: Needs): readonly Pod[] {
  const taken: Pod[] = [];
  let left = pods;
  let still = needs;
  while (still.size > 0 && left.length > 0) {
    const goal = still;
    const best = left.reduce((one, other) => (isBetter(other, one, goal) ? other : one));
    taken.push(best);
    left = left.filter((other) => other !== best);
    still = remaining(still, [best]);
  }
  return taken;
}

function isBetter(one: Pod, than: Pod, needs: Needs): boolean {
  const difference = distance(one, needs) - distance(than, needs);
  return difference < 0 || (difference === 0 && isSmaller(one, than));
}

/** Each need counts by the share of it that would stay open, so that bytes do not outweigh cores. */
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

/** Every pod is one pod; what its class of runtime costs comes on top of what it asks for itself. */
function requestOf(pod: Pod, resource: string): bigint {
  if (resource === 'pods') return 1n;
  const own = podRequests(pod, { overhead: 'excluded' }).get(resource);
  const overhead = readResources(pod.spec.overhead).get(resource);
  const amount = own === undefined ? 0n : unitsOf(resource, own);
  return amount === 0n || overhead === undefined ? amount : amount + unitsOf(resource, overhead);
}

function written(needs: Needs): string {
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
