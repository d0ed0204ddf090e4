import type { ResourceRequirements } from '../kinds/index.ts';
import { compareQuantities } from '../lib/index.ts';
import { initContainersOf } from './containers.ts';
import type { Pod } from './pod.ts';
import { addResources, isPositive, type ResourceList, readResources } from './resources.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/** Only these two decide the class. */
const decisive = ['cpu', 'memory'] as const;

/** The class that was published stays: a pod never changes it while it lives. */
export function qosClass(pod: Pod): QosClass {
  const published = pod.status.qosClass;
  if (published === 'Guaranteed' || published === 'Burstable' || published === 'BestEffort') return published;
  return computeQosClass(pod);
}

/** Nobody changes a spec, and a node full of pods is judged again with each that comes. */
const judgedSpecs = new WeakMap<Pod['spec'], QosClass>();

/** From the spec alone. Ephemeral containers never count: they cannot have resources. */
export function computeQosClass(pod: Pod): QosClass {
  const known = judgedSpecs.get(pod.spec);
  if (known !== undefined) return known;
  const judged = judge(pod);
  judgedSpecs.set(pod.spec, judged);
  return judged;
}

function judge(pod: Pod): QosClass {
  const judged =
    pod.spec.resources === undefined
      ? [...pod.spec.containers, ...initContainersOf(pod)].map(({ resources }) => resources)
      : [pod.spec.resources];
  const requests = addResources(...judged.map((resources) => counted(resources, 'requests')));
  const limits = addResources(...judged.map((resources) => counted(resources, 'limits')));
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const allLimited = judged.every((resources) => counted(resources, 'limits').size === decisive.length);
  return allLimited && isSame(requests, limits) ? 'Guaranteed' : 'Burstable';
}

function counted(resources: ResourceRequirements | undefined, side: 'requests' | 'limits'): ResourceList {
  const list = readResources(resources?.[side]);
  return new Map(
    decisive.flatMap((name) => {
      const amount = list.get(name);
      return isPositive(amount) ? [[name, amount] as const] : [];
    }),
  );
}

function isSame(a: ResourceList, b: ResourceList): boolean {
  if (a.size !== b.size) return false;
  return [...a].every(([name, amount]) => {
    const other = b.get(name);
    return other !== undefined && compareQuantities(amount, other) === 0;
  });
}
