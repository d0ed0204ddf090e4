import type { Pod } from '../pods/index.ts';
import type { Admission, Judgement, Refusal } from '../resources/index.ts';
import { appArmorProblem, sysctlProblem } from '../runtime/index.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

/**
 * A pod that `lives-here` was admitted by an earlier kubelet since the machine was started, and has its sandbox: what
 * became of the node's labels or resources meanwhile is no reason to throw it out.
 */
export type PodStanding = 'new' | 'lives-here';

export interface AdmissionRequest {
  readonly standing: PodStanding;
  /** How many other pods use, or will use, resources of the node. */
  readonly others: number;
  readonly maxPods: number;
  /** Why the pod may not have the sysctls it asks for. */
  readonly sysctlProblem?: string | undefined;
  /** What became of what it asks for by the piece. */
  readonly allotment?: 'awaited' | Refusal | undefined;
  /** Why the pod cannot be confined as it asks for. */
  readonly appArmorProblem?: string | undefined;
  /** Why the pod cannot have just the groups it names. */
  readonly groupsProblem?: string | undefined;
  readonly isShuttingDown?: boolean | undefined;
}

/** Of several reasons to refuse it the first counts. */
export function admitPod(request: AdmissionRequest): Admission {
  if (request.standing === 'lives-here') return { admit: true };
  const allotment = request.allotment === 'awaited' ? undefined : request.allotment;
  const refusals = [
    ['SysctlForbidden', request.sysctlProblem],
    [allotment?.reason ?? '', allotment?.message],
    ['SupplementalGroupsPolicyNotSupported', request.groupsProblem],
    ['OutOfpods', roomProblem(request)],
    ['AppArmor', request.appArmorProblem],
    ['NodeShutdown', request.isShuttingDown === true ? shuttingDown : undefined],
  ] as const;
  for (const [reason, message] of refusals)
    if (message !== undefined) return { admit: false, reason, message };
  return { admit: true };
}

const shuttingDown = 'Pod was rejected as the node is shutting down.';

function roomProblem({ others, maxPods }: AdmissionRequest): string | undefined {
  if (others < maxPods) return undefined;
  return `Node didn't have enough resource: pods, requested: 1, used: ${others}, capacity: ${maxPods}`;
}

/** What the pod asks of the kernel that this node does not give. */
export function kernelProblems(pod: Pod, { kernel }: Pick<KubeletSettings, 'kernel'>) {
  if (kernel === undefined) return {};
  return {
    sysctlProblem: sysctlProblem(pod, kernel.sysctls),
    appArmorProblem: appArmorProblem(pod, kernel.appArmor),
  };
}

/** A runtime that does not know the policy would give the pod the groups of its image besides. */
export function groupsProblem({ spec }: Pod, { strictGroups }: RuntimeAbilities): string | undefined {
  const isStrict = spec.securityContext?.supplementalGroupsPolicy === 'Strict';
  if (!isStrict || strictGroups) return undefined;
  return 'SupplementalGroupsPolicy=Strict is not supported in this node';
}

export type JudgeNode = (
  pod: Pod,
  others: () => readonly Pod[],
  standing: PodStanding,
  allotment?: AdmissionRequest['allotment'],
) => Judgement;

/** Decides for this node, by what its runtime can do now. */
export function nodeAdmission(
  settings: Pick<KubeletSettings, 'kernel' | 'maxPods'>,
  parts: { readonly abilities: () => RuntimeAbilities; readonly isShuttingDown: () => boolean },
): JudgeNode {
  return (pod, others, standing, allotment) =>
    judgementOf({
      standing,
      allotment,
      others: others().length,
      ...kernelProblems(pod, settings),
      groupsProblem: groupsProblem(pod, parts.abilities()),
      isShuttingDown: parts.isShuttingDown(),
      maxPods: settings.maxPods,
    });
}

/** Nothing is set aside for a pod that is refused before that is looked at. */
function judgementOf(request: AdmissionRequest): Judgement {
  const { standing, allotment, sysctlProblem } = request;
  const isAwaited = allotment === 'awaited' && standing === 'new' && sysctlProblem === undefined;
  if (isAwaited) return { kind: 'allot' };
  const admission = admitPod(request);
  if (admission.admit) return { kind: 'admit' };
  const { reason, message } = admission;
  return { kind: 'refuse', refusal: { reason, message } };
}
