import { isIPv4, isIPv6 } from 'node:net';
import type { PodStatus } from '../kinds/index.ts';
import { formatQuantity } from '../lib/index.ts';
import {
  heldLimits,
  isTerminalPhase,
  type ObservedPod,
  type Pod,
  type PodAllocation,
  podRequests,
  qosClass,
  type ResourceList,
  withAllocation,
} from '../pods/index.ts';
import { podConditions } from './conditions.ts';
import { containerStatuses } from './container-statuses.ts';
import type { StartError, StatusContext } from './context.ts';
import { normalizeStatus } from './normalize.ts';
import { hasStartedRegular, podPhase } from './phase.ts';
import { withProbeFields } from './probe-fields.ts';

/**
 * Computes the status of a pod from its spec, its sandboxes and containers in the runtime, and the
 * previous status. A pure function. The status manager sets transition times and the start time.
 */
export function generatePodStatus(pod: Pod, observed: ObservedPod, context: StatusContext): PodStatus {
  const lists = withProbeFields(pod, containerStatuses(pod, observed, context), context);
  const statuses = [...lists.init, ...lists.regular];
  const status: PodStatus = {
    ...phaseFields(
      pod,
      podPhase({
        pod,
        statuses,
        isTerminal: context.isTerminal,
        hasStartedRegular: hasStartedRegular(pod, observed),
      }),
      context,
    ),
    ...addresses(pod, observed, context),
    ...untouched(pod),
    ...podResourceFields(pod, context.actuated),
    qosClass: qosClass(pod),
    observedGeneration: pod.metadata.generation,
    containerStatuses: lists.regular,
    initContainerStatuses: orNothing(lists.init),
    ephemeralContainerStatuses: orNothing(lists.ephemeral),
  };
  const { previous, hasUsableSandbox } = context;
  // Resize conditions are dropped, because a terminating pod is not resized.
  const isOver = context.isTerminal || isTerminalPhase(status.phase);
  const resize = isOver ? [] : context.resize;
  const conditions = podConditions({ pod, observed, status, previous, hasUsableSandbox, resize });
  return normalizeStatus(pod, { ...status, conditions });
}

/** Returns the status of a pod that was rejected before any container ran. */
export function rejectedPodStatus(pod: Pod, why: StartError, nodeIps: readonly string[]): PodStatus {
  const observed = { ...pod.metadata, ips: [], sandboxes: [], containers: [] };
  const status: PodStatus = {
    phase: 'Failed',
    ...why,
    ...addresses(pod, observed, { nodeIps, previous: pod.status }),
    ...untouched(pod),
    qosClass: qosClass(pod),
    observedGeneration: pod.metadata.generation,
    containerStatuses: pod.status.containerStatuses,
    initContainerStatuses: pod.status.initContainerStatuses,
    ephemeralContainerStatuses: pod.status.ephemeralContainerStatuses,
  };
  const all = podConditions({ pod, observed, status, previous: pod.status, hasUsableSandbox: false });
  // A rejected pod has no conditions about initialization and sandbox, because nothing was
  // attempted.
  const omitted = new Set(['Initialized', 'PodReadyToStartContainers']);
  return normalizeStatus(pod, { ...status, conditions: all.filter(({ type }) => !omitted.has(type)) });
}

type PhaseFields = Pick<PodStatus, 'phase' | 'reason' | 'message'>;

/**
 * Phase, reason and message. A terminal phase in the published or else the cached status is final.
 * Otherwise the phase is Failed for a pod that must fail, and the observed phase for any other pod.
 */
function phaseFields(pod: Pod, observedPhase: string, { previous, eviction }: StatusContext): PhaseFields {
  for (const { phase, reason, message } of [pod.status, previous]) {
    if (isTerminalPhase(phase))
      return { phase, reason: reason ?? previous.reason, message: message ?? previous.message };
  }
  if (eviction !== undefined) return { phase: 'Failed', ...eviction };
  if (observedPhase !== previous.phase) return { phase: observedPhase };
  const { reason = pod.status.reason, message = pod.status.message } = previous;
  return { phase: observedPhase, reason, message };
}

/** Fields of the status that other components write; they are preserved. */
function untouched({ status }: Pod): Partial<PodStatus> {
  return {
    resourceClaimStatuses: status.resourceClaimStatuses,
    extendedResourceClaimStatus: status.extendedResourceClaimStatus,
    nodeAllocatableResourceClaimStatuses: status.nodeAllocatableResourceClaimStatuses,
  };
}

function orNothing<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

type Addresses = Pick<PodStatus, 'hostIP' | 'hostIPs' | 'podIP' | 'podIPs'>;

/** Addresses of node and pod: at most one per family, the node's preferred family first. */
export function addresses(
  pod: Pod,
  observed: ObservedPod,
  { nodeIps, previous }: { readonly nodeIps: readonly string[]; readonly previous: PodStatus },
): Addresses {
  const prefersV6 = isIPv6(nodeIps[0] ?? '');
  const host = onePerFamily(nodeIps, prefersV6);
  const before = (previous.podIPs ?? []).map(({ ip }) => ip);
  const own =
    pod.spec.hostNetwork === true ? hostNetworkIps(before, host) : podIps(observed, before, prefersV6);
  return { ...named('host', host), ...named('pod', own) };
}

/**
 * IP addresses of the pod. They are kept after its sandbox is removed, so that the status of a
 * terminated pod shows them.
 */
function podIps(observed: ObservedPod, before: readonly string[], prefersV6: boolean): readonly string[] {
  const isServed = observed.sandboxes.some(({ state }) => state === 'ready');
  return observed.ips.length === 0 && !isServed ? before : onePerFamily(observed.ips, prefersV6);
}

/**
 * IP addresses of a pod on the host network. They are immutable once set; only a second family may
 * be added.
 */
function hostNetworkIps(before: readonly string[], host: readonly string[]): readonly string[] {
  const [first, second] = before;
  if (first === undefined) return host;
  const added = second ?? host.find((ip) => isIPv4(ip) !== isIPv4(first));
  return added === undefined ? [first] : [first, added];
}

function onePerFamily(ips: readonly string[], prefersV6: boolean): readonly string[] {
  const [v4, v6] = [ips.find((ip) => isIPv4(ip)), ips.find((ip) => isIPv6(ip))];
  return (prefersV6 ? [v6, v4] : [v4, v6]).filter((ip) => ip !== undefined);
}

function named(owner: 'host' | 'pod', ips: readonly string[]): Addresses {
  if (ips.length === 0) return {};
  return { [`${owner}IP`]: ips[0], [`${owner}IPs`]: ips.map((ip) => ({ ip })) };
}

/** Pod-level fields: allocated resources, and the limits of the pod's cgroup. */
function podResourceFields(
  pod: Pod,
  actuated: PodAllocation | undefined,
): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const given = actuated === undefined ? pod : withAllocation(pod, actuated);
  const requests = written(podRequests(given));
  const limits = written(heldLimits(given));
  return {
    allocatedResources: written(podRequests(pod)),
    resources: {
      ...(requests === undefined ? {} : { requests }),
      ...(limits === undefined ? {} : { limits }),
    },
  };
}

function written(list: ResourceList): Readonly<Record<string, string>> | undefined {
  if (list.size === 0) return undefined;
  return Object.fromEntries(Array.from(list, ([name, amount]) => [name, formatQuantity(amount)]));
}
