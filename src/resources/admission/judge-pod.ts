import type { Node } from '../../kinds/index.ts';
import {
  hasPodLevelResources,
  initContainersOf,
  isCriticalPod,
  type Pod,
  type PodUid,
} from '../../pods/index.ts';
import type { Shortage } from './fit.ts';
import { type Judgement, type Refusal, refuse } from './judgement.ts';
import { type Failure, isAffinity, isForNewcomers, predicateFailures, refusalOf } from './predicates.ts';
import { chooseVictims } from './preemption.ts';
import { pressureRefusal } from './pressure.ts';
import type { TolerationRules } from './taints.ts';

/**
 * `lives-here` runs since before this kubelet: nothing throws it out. `admitted-before` was taken by an earlier kubelet,
 * also before a reboot: what became of the node's labels, taints and resources meanwhile is no reason to refuse it.
 */
export type AdmissionStanding = 'new' | 'admitted-before' | 'restored';

/** All there is to know for judging one pod at one moment. Pods are given with the resources they were allotted. */
export interface AdmissionFacts {
  readonly standing: AdmissionStanding;
  /** This node as newly as it is known, or as we would describe it ourselves; undefined when neither is possible. */
  readonly node: Node | undefined;
  /** Pods that use, or will use, resources of the node, without the one that is judged. */
  readonly others: readonly Pod[];
  /** Those of them that are being ended. */
  readonly ending: ReadonlySet<PodUid>;
  /** Conditions of the node such as MemoryPressure and DiskPressure that are true now. */
  readonly pressures: readonly string[];
  readonly isShuttingDown: boolean;
  /** Whether the runtime can give containers just the groups their pod names. */
  readonly strictGroups: boolean;
  readonly tolerationRules: TolerationRules;
  /** Whether pods may have resources of their own. */
  readonly podLevelResources: boolean;
  /** Features the node has declared; undefined where none are looked at. */
  readonly declaredFeatures: ReadonlySet<string> | undefined;
  /** Why the pod may not have the sysctls it asks for. */
  readonly sysctlProblem?: string | undefined;
  /** Why the pod must not have the host ports it requests. */
  readonly nodePortProblem?: string | undefined;
  /** Why the pod cannot be confined as it asks for. */
  readonly appArmorProblem?: string | undefined;
  /** What became of what it asks for by the piece: a refusal, or not known yet; left out when there is nothing in the way. */
  readonly allotment?: 'awaited' | Refusal | undefined;
}

/** Whether the pod may run here. Pure. Of several reasons against it the first counts, in the order users know. */
export function judgePod(pod: Pod, facts: AdmissionFacts): Judgement {
  if (facts.standing === 'restored') return { kind: 'admit' };
  const before = firstOf(
    pressureRefusal(pod, facts.pressures, facts.tolerationRules),
    named('SysctlForbidden', facts.sysctlProblem),
    named('NodePorts', facts.nodePortProblem),
  );
  if (before !== undefined) return { kind: 'refuse', refusal: before };
  const { allotment } = facts;
  if (allotment === 'awaited') return { kind: 'allot' };
  if (allotment !== undefined) return { kind: 'refuse', refusal: allotment };
  const judgement = judgeOnNode(pod, facts);
  // Nobody ends, and nobody waits, for a pod that is refused in any case.
  const after = judgement.kind === 'refuse' ? undefined : laterRefusal(pod, facts);
  return after === undefined ? judgement : { kind: 'refuse', refusal: after };
}

/** Before anybody is ended for the pod come the rules that no room in the world would change. */
function judgeOnNode(pod: Pod, facts: AdmissionFacts): Judgement {
  const { node } = facts;
  if (node === undefined) return refuse('InvalidNodeInfo', 'Kubelet cannot get node info.');
  const fixed = systemRefusal(pod) ?? groupsRefusal(pod, facts);
  if (fixed !== undefined) return { kind: 'refuse', refusal: fixed };
  const failures = failuresOf(pod, node, facts, facts.others);
  const [first] = failures;
  if (first === undefined) return { kind: 'admit' };
  const refusal = refusalOf(first);
  if (failures.every(isAffinity)) return { kind: 'ask-node', refusal };
  const staying = facts.others.filter(({ metadata: { uid } }) => !facts.ending.has(uid));
  const lasting = failuresOf(pod, node, facts, staying);
  if (lasting.length === 0) return { kind: 'wait-for-room', refusal };
  return isCriticalPod(pod) ? judgeCritical(pod, staying, lasting, refusal) : { kind: 'refuse', refusal };
}

function failuresOf(pod: Pod, node: Node, facts: AdmissionFacts, others: readonly Pod[]): readonly Failure[] {
  const { tolerationRules, standing } = facts;
  const failures = predicateFailures(pod, { node, others, tolerationRules });
  return standing === 'admitted-before' ? failures.filter((one) => !isForNewcomers(one)) : failures;
}

/** A critical pod is never refused for want of room, as long as others can make some. */
function judgeCritical(
  pod: Pod,
  others: readonly Pod[],
  failures: readonly Failure[],
  refusal: Refusal,
): Judgement {
  const mismatch = failures.find(({ kind }) => kind === 'mismatch');
  if (mismatch !== undefined) return { kind: 'refuse', refusal: refusalOf(mismatch) };
  const short = failures.filter((one): one is Shortage => one.kind === 'shortage');
  const choice = chooseVictims(pod, others, short);
  if (choice.found) {
    const { victims } = choice;
    return { kind: 'make-room', preemption: { victims, resource: short[0]?.resource ?? '', refusal } };
  }
  const cause = `no set of running pods found to reclaim resources: ${choice.lacking}`;
  return refuse(
    'UnexpectedAdmissionError',
    'Unexpected error while attempting to recover from admission failure: preemption: ' +
      `error finding a set of pods to preempt: ${cause}`,
  );
}

const system = 'linux';

function systemRefusal({ metadata, spec }: Pod): Refusal | undefined {
  const label = metadata.labels?.['kubernetes.io/os'];
  if (label !== undefined && label !== system) {
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    };
  }
  if (spec.os === undefined || spec.os.name === system) return undefined;
  return {
    reason: 'PodOSNotSupported',
    message: "Failed to admit pod as the OS field doesn't match node OS",
  };
}

/** A runtime that does not know the policy would give the pod the groups of its image besides. */
function groupsRefusal({ spec }: Pod, { strictGroups }: AdmissionFacts): Refusal | undefined {
  const isStrict = spec.securityContext?.supplementalGroupsPolicy === 'Strict';
  if (!isStrict || strictGroups) return undefined;
  return {
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
  };
}

function laterRefusal(pod: Pod, facts: AdmissionFacts): Refusal | undefined {
  // One that has run was confined then, and is as it was.
  const isPending = (pod.status.phase ?? 'Pending') === 'Pending';
  return firstOf(
    isPending ? named('AppArmor', facts.appArmorProblem) : undefined,
    !facts.podLevelResources && hasPodLevelResources(pod)
      ? { reason: 'PodLevelResourcesNotSupported', message: 'PodLevelResources feature gate is disabled' }
      : undefined,
    featureRefusal(pod, facts.declaredFeatures),
    facts.isShuttingDown
      ? { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' }
      : undefined,
  );
}

/** Features a node has to have declared for a pod that cannot do without them. */
const features: readonly (readonly [string, (pod: Pod) => boolean])[] = [
  [
    'RestartAllContainersOnContainerExits',
    (pod) =>
      [...pod.spec.containers, ...initContainersOf(pod)].some(({ restartPolicyRules = [] }) =>
        restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
      ),
  ],
  ['UserNamespacesHostNetworkSupport', ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false],
];

function featureRefusal(pod: Pod, declared: ReadonlySet<string> | undefined): Refusal | undefined {
  if (declared === undefined) return undefined;
  const lacking = features.filter(([name, needs]) => !declared.has(name) && needs(pod)).map(([name]) => name);
  if (lacking.length === 0) return undefined;
  const message = `Pod requires node features that are not available: ${lacking.join(', ')}`;
  return { reason: 'PodFeatureUnsupported', message };
}

function named(reason: string, message: string | undefined): Refusal | undefined {
  return message === undefined ? undefined : { reason, message };
}

function firstOf(...refusals: readonly (Refusal | undefined)[]): Refusal | undefined {
  return refusals.find((one) => one !== undefined);
}
