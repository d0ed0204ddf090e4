import type { Container, ResourceRequirements } from '../kinds/index.ts';
import { compareQuantities } from '../lib/index.ts';
import { sameJson } from './equality.ts';
import type { Pod } from './pod.ts';
import { hasPodLevelResources, isPositive, readResources } from './resources.ts';

/**
 * The resources of a pod and its containers at one stage of a resize: desired by the spec,
 * allocated by the node, or actuated by the runtime.
 */
export interface PodAllocation {
  /** The resources of containers by name. */
  readonly containers: Readonly<Record<string, ResourceRequirements>>;
  /** The pod-level resources. */
  readonly pod?: ResourceRequirements | undefined;
}

/** The resources that the spec requests. */
export function allocationOf({ spec }: Pod): PodAllocation {
  const all = [...(spec.initContainers ?? []), ...spec.containers];
  return {
    containers: Object.fromEntries(all.map(({ name, resources = {} }) => [name, resources])),
    pod: spec.resources,
  };
}

/** A copy of the pod with these resources in its spec; the pod itself if they are equal. */
export function withAllocation(pod: Pod, allocation: PodAllocation): Pod {
  const { spec } = pod;
  const given = (container: Container) => {
    const own = Object.hasOwn(allocation.containers, container.name);
    const resources = own ? allocation.containers[container.name] : undefined;
    return resources === undefined || sameResources(container.resources, resources)
      ? container
      : { ...container, resources };
  };
  const containers = spec.containers.map(given);
  const initContainers = spec.initContainers?.map(given);
  const isSame =
    containers.every((one, index) => one === spec.containers[index]) &&
    (initContainers ?? []).every((one, index) => one === spec.initContainers?.[index]);
  const isSameAllocation = sameResources(spec.resources, allocation.pod);
  if (isSame && isSameAllocation) return pod;
  const { resources: _wanted, ...rest } = spec;
  const resources = isSameAllocation ? spec.resources : allocation.pod;
  return {
    ...pod,
    spec: {
      ...rest,
      containers,
      ...(initContainers && { initContainers }),
      ...(resources && { resources }),
    },
  };
}

export function sameAllocation(a: PodAllocation, b: PodAllocation): boolean {
  const names = new Set([...Object.keys(a.containers), ...Object.keys(b.containers)]);
  return (
    sameResources(a.pod, b.pod) &&
    [...names].every((name) => sameResources(a.containers[name], b.containers[name]))
  );
}

/** Whether two amounts of resources are equal, independent of their spelling. */
export function sameResources(a: ResourceRequirements = {}, b: ResourceRequirements = {}): boolean {
  return (
    a === b ||
    (sameList(a.requests, b.requests) &&
      sameList(a.limits, b.limits) &&
      sameJson(a.claims ?? [], b.claims ?? []))
  );
}

type WrittenList = Readonly<Record<string, string>>;

function sameList(a: WrittenList = {}, b: WrittenList = {}): boolean {
  if (sameJson(a, b)) return true;
  const [one, other] = [readResources(a), readResources(b)];
  if (one.size !== other.size) return false;
  return [...one].every(([name, amount]) => {
    const its = other.get(name);
    return its !== undefined && compareQuantities(amount, its) === 0;
  });
}

/**
 * The effective resources of a container: one without its own limit may use up to the pod-level
 * limit.
 */
export function effectiveResources(pod: Pod, { resources = {} }: Container): ResourceRequirements {
  return hasPodLevelResources(pod) ? filled(resources, pod.spec.resources) : resources;
}

/** The effective resources of all containers of the pod, which are sent to the runtime. */
export function effectiveAllocation(pod: Pod): PodAllocation {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const containers = all.map((container) => [container.name, effectiveResources(pod, container)] as const);
  return { containers: Object.fromEntries(containers), pod: pod.spec.resources };
}

function filled(own: ResourceRequirements, whole: ResourceRequirements = {}): ResourceRequirements {
  const has = readResources(own.limits);
  const missing = Object.entries(whole.limits ?? {}).filter(
    ([name]) => (name === 'cpu' || name === 'memory') && !isPositive(has.get(name)),
  );
  if (missing.length === 0) return own;
  return { ...own, limits: { ...own.limits, ...Object.fromEntries(missing) } };
}
