import type { Container, ResourceRequirements } from '../kinds/index.ts';
import { compareQuantities } from '../lib/index.ts';
import type { Pod } from './pod.ts';
import { initContainersOf, isSidecar } from './pod.ts';
import { addResources, isPositive, podLimits, type ResourceList, readResources } from './resources.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/** Only CPU and memory determine the QoS class. */
const decisive = ['cpu', 'memory'] as const;

/**
 * The QoS class of the pod: the published one, which is immutable during the life of a pod, else
 * the computed one.
 */
export function qosClass(pod: Pod): QosClass {
  const published = pod.status.qosClass;
  if (published === 'Guaranteed' || published === 'Burstable' || published === 'BestEffort') return published;
  return computeQosClass(pod);
}

/**
 * The computed QoS classes are cached, because specs are immutable and every admission evaluates
 * all pods of the node.
 */
const judgedSpecs = new WeakMap<Pod['spec'], QosClass>();

/**
 * The QoS class computed from the spec alone. Ephemeral containers do not count, because they have
 * no resources.
 */
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

/**
 * The CPU and memory limits of the pod's cgroup; limits of other resources are those of the spec.
 */
export function heldLimits(pod: Pod): ResourceList {
  const isKept = (name: string) => (name === 'cpu' || name === 'memory' ? isHeldTo(pod, name) : true);
  return new Map([...podLimits(pod)].filter(([name]) => isKept(name)));
}

/** Whether the pod's cgroup has a limit for the resource: only if every container has one. */
export function isHeldTo(pod: Pod, resource: 'cpu' | 'memory'): boolean {
  const quality = qosClass(pod);
  return quality === 'Guaranteed' || (quality === 'Burstable' && limitsAll(pod, resource));
}

/**
 * Whether every container has a limit, or the pod itself does. An init container after a sidecar
 * with a limit counts as limited, because the Go kubelet adds the sidecars before it to its
 * resources.
 */
function limitsAll(pod: Pod, resource: 'cpu' | 'memory'): boolean {
  const isSet = (resources: ResourceRequirements | undefined) =>
    isPositive(readResources(resources?.limits).get(resource));
  const isHeld = ({ resources }: Container) => isSet(resources);
  const init = initContainersOf(pod);
  const firstSidecar = init.findIndex((container) => isSidecar(container) && isHeld(container));
  const alone = firstSidecar === -1 ? init : init.slice(0, firstSidecar);
  return isSet(pod.spec.resources) || [...pod.spec.containers, ...alone].every(isHeld);
}
