import type { PodStatus } from '../kinds/index.ts';
import { isTerminalPhase, type ObservedPod, type Pod, qosClass } from '../pods/index.ts';
import { podConditions, readinessConditions } from './conditions.ts';
import { containerStatuses } from './container-statuses.ts';
import type { StartError, StatusContext } from './context.ts';
import { normalizeStatus } from './normalize.ts';
import { hasStartedRegular, podPhase } from './phase.ts';
import { addresses } from './pod-ips.ts';
import { podResourceFields } from './pod-resources.ts';
import { withProbeFields } from './probe-fields.ts';

/**
 * The status of a pod from its spec, what the runtime says of it and what was said before. Pure: the same input, the
 * same status. Times of transition and of start are left to the status manager, which knows what they were.
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
  // A pod that ends is not resized any more.
  const isOver = context.isTerminal || isTerminalPhase(status.phase);
  const resize = isOver ? [] : context.resize;
  const conditions = podConditions({ pod, observed, status, previous, hasUsableSandbox, resize });
  return normalizeStatus(pod, { ...status, conditions });
}

/** The status of a pod that was refused before anything of it ran. */
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
  // Nothing was tried, so there is nothing to say about initialization or a sandbox.
  const tried = new Set(['Initialized', 'PodReadyToStartContainers']);
  return normalizeStatus(pod, { ...status, conditions: all.filter(({ type }) => !tried.has(type)) });
}

/**
 * Whether the pod has to be looked at because a condition that its readiness gates name has changed: what was
 * published as Ready no longer follows from the rest.
 */
export function needsReadinessReconcile(pod: Pod): boolean {
  if ((pod.spec.readinessGates ?? []).length === 0) return false;
  const current = pod.status.conditions?.find(({ type }) => type === 'Ready');
  const wanted = readinessConditions(pod, pod.status).find(({ type }) => type === 'Ready');
  return current !== undefined && (current.status !== wanted?.status || current.message !== wanted.message);
}

type PhaseFields = Pick<PodStatus, 'phase' | 'reason' | 'message'>;

/** A pod that has ended stays as it ended: what was published goes before what was kept, that before what is seen. */
function phaseFields(pod: Pod, seen: string, { previous, eviction }: StatusContext): PhaseFields {
  for (const { phase, reason, message } of [pod.status, previous]) {
    if (isTerminalPhase(phase))
      return { phase, reason: reason ?? previous.reason, message: message ?? previous.message };
  }
  if (eviction !== undefined) return { phase: 'Failed', ...eviction };
  if (seen !== previous.phase) return { phase: seen };
  const { reason = pod.status.reason, message = pod.status.message } = previous;
  return { phase: seen, reason, message };
}

/** Written by others, and given back as they are. */
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
