import type { Container, ResourceRequirements } from '../../kinds/index.ts';
import {
  effectiveResources,
  initContainersOf,
  memoryOf,
  milliCpuOf,
  newestInstance,
  type ObservedPod,
  type Pod,
  type PodAllocation,
  readResources,
} from '../../pods/index.ts';

export type ResizedResource = 'cpu' | 'memory';
const resized = ['memory', 'cpu'] as const;

/** A running container whose allocated resources differ from the applied ones. */
export interface ContainerUpdate {
  /** The runtime's container id. */
  readonly id: string;
  readonly container: Container;
  readonly before: ResourceRequirements;
  readonly after: ResourceRequirements;
}

/** Resource changes of a pod. The pod's cgroup is updated even without container updates. */
export interface ResizePlan {
  /** Memory updates of containers in order of execution: decreases before increases. */
  readonly memory: readonly ContainerUpdate[];
  readonly cpu: readonly ContainerUpdate[];
}

export interface StartsAndStops {
  readonly starting: ReadonlySet<string>;
  /** Containers that this sync stops, by the runtime's container id. */
  readonly stopping: ReadonlySet<string>;
}

type Side = 'requests' | 'limits';

/**
 * Plans the changes from applied to allocated resources; undefined when nothing changes. A pure
 * function.
 */
export function planResize(
  pod: Pod,
  observed: ObservedPod,
  actuated: PodAllocation | undefined,
  { starting, stopping }: StartsAndStops,
): ResizePlan | undefined {
  if (actuated === undefined) return undefined;
  const updates = updatesOf(pod, observed, actuated).filter(({ id }) => !stopping.has(id));
  // A container that is about to start is created with its new resources, but the pod's cgroup must
  // be changed for it.
  const isStartingResized = allContainers(pod).some(
    (container) => starting.has(container.name) && isResized(pod, container, actuated),
  );
  if (updates.length === 0 && !isStartingResized && !isPodResized(pod, actuated)) return undefined;
  const of = (resource: ResizedResource) =>
    updates
      .filter(({ before, after }) => isOther(before, after, resource))
      .toSorted((a, b) => growth(a, resource) - growth(b, resource));
  return { memory: of('memory'), cpu: of('cpu') };
}

/** Whether a running container's applied resources differ from its allocation. */
export function isResizeInProgress(
  pod: Pod,
  observed: ObservedPod,
  actuated: PodAllocation | undefined,
): boolean {
  if (actuated === undefined) return false;
  return isPodResized(pod, actuated) || updatesOf(pod, observed, actuated).length > 0;
}

/** Whether the resize policy requires a restart of the container. */
export function restartsForResize(
  pod: Pod,
  container: Container,
  actuated: PodAllocation | undefined,
): boolean {
  const before = actuated?.containers[container.name];
  if (before === undefined) return false;
  const after = effectiveResources(pod, container);
  return (container.resizePolicy ?? []).some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === 'RestartContainer' &&
      (resourceName === 'cpu' || resourceName === 'memory') &&
      isOther(before, after, resourceName),
  );
}

function updatesOf(pod: Pod, observed: ObservedPod, actuated: PodAllocation): readonly ContainerUpdate[] {
  return allContainers(pod).flatMap((container) => {
    const newest = newestInstance(observed, container.name);
    const before = actuated.containers[container.name];
    if (newest?.state !== 'running' || before === undefined) return [];
    if (!isResized(pod, container, actuated)) return [];
    return [{ id: newest.id, container, before, after: effectiveResources(pod, container) }];
  });
}

function isResized(pod: Pod, container: Container, { containers }: PodAllocation): boolean {
  const before = containers[container.name];
  if (before === undefined) return false;
  const after = effectiveResources(pod, container);
  return resized.some((resource) => isOther(before, after, resource));
}

/** Whether pod-level resources changed, including those added or removed while the pod runs. */
function isPodResized({ spec: { resources = {} } }: Pod, { pod: before = {} }: PodAllocation): boolean {
  return resized.some((resource) => isOther(before, resources, resource));
}

function isOther(a: ResourceRequirements, b: ResourceRequirements, resource: ResizedResource): boolean {
  return (['requests', 'limits'] as const).some(
    (side) => amountOf(a, side, resource) !== amountOf(b, side, resource),
  );
}

/** An amount in millicores or bytes; 0 when it is unset. */
export function amountOf(resources: ResourceRequirements, side: Side, resource: ResizedResource): bigint {
  const list = readResources(resources[side]);
  return resource === 'cpu' ? milliCpuOf(list) : memoryOf(list);
}

/**
 * Change of a container's limit, or of its request when the limits are equal; negative for a
 * decrease.
 */
function growth({ before, after }: ContainerUpdate, resource: ResizedResource): number {
  for (const side of ['limits', 'requests'] as const) {
    const [was, is] = [amountOf(before, side, resource), amountOf(after, side, resource)];
    // An unset limit (0) counts as larger than any other limit.
    const asSize = (amount: bigint) =>
      side === 'limits' && amount === 0n ? Number.POSITIVE_INFINITY : Number(amount);
    if (was !== is) return asSize(is) < asSize(was) ? -1 : 1;
  }
  return 0;
}

function allContainers(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers];
}
