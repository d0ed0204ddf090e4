import type { EvictionThreshold } from '../../config/index.ts';
import type { PodStatus } from '../../kinds/index.ts';
import { compareQuantities, formatQuantity, type Quantity, quantityOf } from '../../lib/index.ts';
import { hasPodLevelResources, initContainersOf, type Pod, readResources } from '../../pods/index.ts';
import type { ContainerResourceUsage, PodResourceUsage } from './eviction-stats.ts';
import {
  availableQuantity,
  type Observations,
  quantityFor,
  resourceOf,
  type StarvedResource,
} from './observations.ts';

export interface EvictionMessage {
  /**
   * The message of the event and the pod status; part of the API, like the names of the
   * annotations.
   */
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface EvictionMessageInput {
  readonly resource: StarvedResource;
  readonly pod: Pod;
  /** The resource usage of the pod; undefined if its stats are unavailable. */
  readonly measures: PodResourceUsage | undefined;
  readonly acting: readonly EvictionThreshold[];
  readonly observations: Observations;
}

interface Offender {
  readonly name: string;
  readonly usage: string;
  readonly request: string;
}

/** Builds the eviction message, which is used in the pod status and the event. */
export function evictionMessage(input: EvictionMessageInput): EvictionMessage {
  const { resource, pod, measures } = input;
  const why = `The node was low on resource: ${resource}. ${shortage(input)}`;
  if (measures === undefined) return { message: why, annotations: {} };
  const whole = resource === 'memory' ? offendingPod(pod, measures) : undefined;
  const containers = offendingContainers(pod, measures, resource);
  return {
    message: [
      why,
      ...(whole === undefined ? [] : [consumption('Pod', whole, resource)]),
      ...containers.map((each) => consumption('Container', each, resource)),
    ].join(''),
    annotations: {
      ...(whole && { offending_pod: whole.name, offending_pod_usage: whole.usage }),
      offending_containers: containers.map(({ name }) => name).join(','),
      offending_containers_usage: containers.map(({ usage }) => usage).join(','),
      starved_resource: resource,
    },
  };
}

/** The message names the first threshold of the resource. */
function shortage({ resource, acting, observations }: EvictionMessageInput): string {
  const crossed = acting.find(({ signal }) => resourceOf(signal) === resource && observations.has(signal));
  const left = crossed && observations.get(crossed.signal);
  if (crossed === undefined || left === undefined) return '';
  const threshold = formatQuantity(quantityFor(crossed.value, left.capacity));
  return `Threshold quantity: ${threshold}, available: ${formatQuantity(availableQuantity(crossed.signal, left))}. `;
}

function consumption(what: string, { name, usage, request }: Offender, resource: StarvedResource): string {
  return `${what} ${name} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `;
}

function offendingPod(pod: Pod, { memoryBytes }: PodResourceUsage): Offender | undefined {
  const request = hasPodLevelResources(pod)
    ? readResources(pod.spec.resources?.requests).get('memory')
    : undefined;
  if (request === undefined || memoryBytes === undefined) return undefined;
  const usage = formatQuantity(quantityOf(memoryBytes, 'BinarySI'));
  return { name: pod.metadata.name, usage, request: formatQuantity(request) };
}

/** Ephemeral containers have no requests, so the message does not name them. */
function offendingContainers(
  pod: Pod,
  { containers }: PodResourceUsage,
  resource: StarvedResource,
): readonly Offender[] {
  const written = new Map(
    [...pod.spec.containers, ...initContainersOf(pod)].map((each) => [each.name, each]),
  );
  return containers.flatMap((container) => {
    const usage = usedBy(container, resource);
    const known = written.get(container.name);
    if (usage === undefined || known === undefined) return [];
    const request = readResources(known.resources?.requests).get(resource) ?? quantityOf(0);
    if (compareQuantities(usage, request) <= 0) return [];
    return [{ name: container.name, usage: formatQuantity(usage), request: formatQuantity(request) }];
  });
}

function usedBy(container: ContainerResourceUsage, resource: StarvedResource): Quantity | undefined {
  const { memoryBytes, rootfs, logs } = container;
  if (resource === 'memory')
    return memoryBytes === undefined ? undefined : quantityOf(memoryBytes, 'BinarySI');
  if (resource !== 'ephemeral-storage' || rootfs === undefined || logs === undefined) return undefined;
  return quantityOf(rootfs.bytes + logs.bytes, 'BinarySI');
}

/** The status reason of evicted pods; part of the API. */
export const evictedReason = 'Evicted';

export interface EvictionDecision {
  readonly message: string;
  /**
   * `reported` adds the condition DisruptionTarget to the status of the evicted pod; `unreported` is used
   * for pods that exceeded their own limits.
   */
  readonly disruption: 'reported' | 'unreported';
}

/** Returns the final status of an evicted pod. */
export function evictedStatus(status: PodStatus, verdict: EvictionDecision, { metadata }: Pod): PodStatus {
  const { message, disruption } = verdict;
  const ended = { ...status, phase: 'Failed', reason: evictedReason, message };
  if (disruption === 'unreported') return ended;
  const type = 'DisruptionTarget';
  const others = (status.conditions ?? []).filter((condition) => condition.type !== type);
  const condition = {
    type,
    status: 'True',
    reason: 'TerminationByKubelet',
    message,
    observedGeneration: metadata.generation,
  };
  return { ...ended, conditions: [...others, condition] };
}
