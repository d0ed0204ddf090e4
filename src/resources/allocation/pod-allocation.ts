import type { ContainerStatus, ResourceRequirements } from '../../kinds/index.ts';
import { compareQuantities } from '../../lib/index.ts';
import {
  allocationOf,
  findNamed,
  type Pod,
  type PodAllocation,
  readResources,
  withAllocation,
} from '../../pods/index.ts';

/**
 * Restores the allocation of a pod from its published status, if its checkpoint is lost. Undefined
 * if the status does not differ from the spec.
 */
export function publishedAllocation(pod: Pod): PodAllocation | undefined {
  const { status, metadata } = pod;
  const isBehind = (status.observedGeneration ?? 0) < (metadata.generation ?? 0);
  const waits = status.conditions?.some(({ type }) => type === 'PodResizePending') === true;
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  if ((!waits && !isBehind) || statuses.length === 0) return undefined;
  const requested = allocationOf(pod);
  const containers = Object.entries(requested.containers).map(([name, resources]) => {
    const reported = findNamed(statuses, name);
    return [name, reported === undefined ? resources : allocationFromStatus(reported, resources)] as const;
  });
  return { containers: Object.fromEntries(containers), pod: requested.pod };
}

function allocationFromStatus(
  { allocatedResources: requests, resources }: ContainerStatus,
  requested: ResourceRequirements,
): ResourceRequirements {
  if (requests === undefined) return requested;
  const { limits } = resources ?? {};
  return { ...requested, requests, ...(limits && { limits }) };
}

/**
 * Returns the pod with the maximum of its allocated and actuated requests, because resources being
 * released are still in use.
 */
export function maxAllocation(pod: Pod, other: PodAllocation): Pod {
  const own = allocationOf(pod);
  const containers = Object.entries(own.containers).map(
    ([name, resources]) => [name, larger(resources, other.containers[name])] as const,
  );
  const whole = own.pod === undefined ? undefined : larger(own.pod, other.pod);
  return withAllocation(pod, { containers: Object.fromEntries(containers), pod: whole });
}

function larger(own: ResourceRequirements, other: ResourceRequirements = {}): ResourceRequirements {
  const mine = readResources(own.requests);
  const its = readResources(other.requests);
  const requests = Object.fromEntries(
    ['cpu', 'memory'].flatMap((name) => {
      const [a, b] = [mine.get(name), its.get(name)];
      const isLarger = b !== undefined && (a === undefined || compareQuantities(b, a) > 0);
      const text = isLarger ? other.requests?.[name] : undefined;
      return text === undefined ? [] : [[name, text] as const];
    }),
  );
  return { ...own, requests: { ...own.requests, ...requests } };
}
