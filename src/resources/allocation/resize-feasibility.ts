import type { Container, ResourceRequirements } from '../../kinds/index.ts';
import { compareQuantities, parseQuantity } from '../../lib/index.ts';
import {
  allocationOf,
  initContainersOf,
  type Pod,
  qosClass,
  readResources,
  sameResources,
} from '../../pods/index.ts';
import type { RequestedResize } from './metrics.ts';

/** The properties of the node that make a resize infeasible independent of its capacity. */
export interface ResizeLimits {
  /** Whether a container may use swap, whose limit depends on the memory request. */
  readonly mayUseSwap: (pod: Pod, container: Container) => boolean;
  /** Whether a static policy allocates CPUs or memory exclusively to Guaranteed pods. */
  readonly exclusive: { readonly cpu: boolean; readonly memory: boolean };
  /** Whether pod-level resources can be resized. */
  readonly podLevel: boolean;
}

export interface Infeasible {
  readonly message: string;
  /** The value of the metric label that tells why the resize is infeasible. */
  readonly detail: string;
}

/** Returns why a resize is infeasible; undefined if it may be allocated. */
export function infeasibility(pod: Pod, allocated: Pod, limits: ResizeLimits): Infeasible | undefined {
  if (resizesSwap(pod, allocated, limits))
    return {
      message: 'In-place resize of containers with swap is not supported.',
      detail: 'swap_limitation',
    };
  if (!limits.podLevel && !sameResources(pod.spec.resources, allocated.spec.resources))
    return {
      message: 'InPlacePodLevelResourcesVerticalScaling is disabled',
      detail: 'plr_feature_gate_off',
    };
  if (qosClass(pod) !== 'Guaranteed') return undefined;
  const { cpu, memory } = limits.exclusive;
  if (cpu && changes(pod, allocated, 'cpu'))
    return {
      message: 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
      detail: 'guaranteed_pod_cpu_manager_static_policy',
    };
  if (memory && changes(pod, allocated, 'memory'))
    return {
      message: 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
      detail: 'guaranteed_pod_memory_manager_static_policy',
    };
  return undefined;
}

function resizesSwap(pod: Pod, allocated: Pod, { mayUseSwap }: ResizeLimits): boolean {
  return pairs(pod, allocated).some(
    ([requested, has]) =>
      isOther(requested, has, 'memory') &&
      !restartsForMemory(has) &&
      (mayUseSwap(pod, requested) || mayUseSwap(allocated, has)),
  );
}

function restartsForMemory({ resizePolicy = [] }: Container): boolean {
  const policy = resizePolicy.find(({ resourceName }) => resourceName === 'memory');
  return policy?.restartPolicy === 'RestartContainer';
}

function changes(pod: Pod, allocated: Pod, resource: 'cpu' | 'memory'): boolean {
  return pairs(pod, allocated).some(([requested, has]) => isOther(requested, has, resource));
}

function pairs(pod: Pod, allocated: Pod): readonly (readonly [Container, Container])[] {
  const all = (one: Pod) => [...initContainersOf(one), ...one.spec.containers];
  const own = new Map(all(allocated).map((container) => [container.name, container]));
  return all(pod).map((container) => [container, own.get(container.name) ?? container]);
}

const nothing = parseQuantity('0');

function isOther(a: Container, b: Container, resource: string): boolean {
  const of = ({ resources }: Container) => readResources(resources?.requests).get(resource) ?? nothing;
  return compareQuantities(of(a), of(b)) !== 0;
}

/** Returns the requested changes of requests and limits, for each container and resource. */
export function requestedResizes(before: Pod, after: Pod): readonly RequestedResize[] {
  const [was, is] = [allocationOf(before), allocationOf(after)];
  return Object.keys(is.containers).flatMap((name) =>
    (['memory', 'cpu'] as const).flatMap((resource) =>
      (['requests', 'limits'] as const).flatMap((requirement) => {
        const operation = operationOf(was.containers[name], is.containers[name], requirement, resource);
        return operation === undefined ? [] : [{ resource, requirement, operation }];
      }),
    ),
  );
}

function operationOf(
  before: ResourceRequirements | undefined,
  after: ResourceRequirements | undefined,
  side: 'requests' | 'limits',
  resource: string,
): RequestedResize['operation'] | undefined {
  const [was, is] = [before, after].map((one) => readResources(one?.[side]).get(resource));
  if (was === undefined || is === undefined) {
    if (was === is) return undefined;
    return was === undefined ? 'add' : 'remove';
  }
  const order = compareQuantities(is, was);
  if (order === 0) return undefined;
  return order > 0 ? 'increase' : 'decrease';
}

/** Builds the event message of a resize: a text and the resources as JSON. */
export function resizeMessage(
  words: string,
  pod: Pod,
  generation: number | undefined,
  error?: string,
): string {
  const init = initContainersOf(pod).map(summary);
  const about = {
    ...(init.length > 0 && { initContainers: init }),
    containers: pod.spec.containers.map(summary),
    generation: generation ?? 0,
    ...(error !== undefined && error !== '' && { error }),
  };
  return `${words}: ${JSON.stringify(about)}`;
}

function summary({ name, resources = {} }: Container): object {
  const { limits, requests, claims } = resources;
  return {
    name,
    resources: { ...(limits && { limits }), ...(requests && { requests }), ...(claims && { claims }) },
  };
}
