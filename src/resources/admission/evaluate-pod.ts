import type { Node } from '../../kinds/index.ts';
import {
  hasPodLevelResources,
  initContainersOf,
  isCriticalPod,
  type Pod,
  type PodUid,
} from '../../pods/index.ts';
import { type Evaluation, type Rejection, refuse } from './evaluation.ts';
import type { Shortage } from './fit.ts';
import {
  appliesToNewPodsOnly,
  type Failure,
  isAffinity,
  predicateFailures,
  rejectionOf,
} from './predicates.ts';
import { chooseVictims } from './preemption.ts';
import { pressureRejection } from './pressure.ts';
import type { TolerationRules } from './taints.ts';

/**
 * A `restored` pod has run since before this kubelet process and is never rejected. An
 * `admitted-before` pod was admitted by a previous kubelet, also before a reboot: later changes of
 * node labels, taints and resources do not reject it.
 */
export type AdmissionStanding = 'new' | 'admitted-before' | 'restored';

/**
 * Everything on which the admission of a pod depends, read at the same time. The pods in it have
 * their allocated resources, not those of their specs.
 */
export interface AdmissionFacts {
  readonly standing: AdmissionStanding;
  /**
   * The newest known Node object of this node, or the one that this kubelet would register;
   * undefined if neither is available.
   */
  readonly node: Node | undefined;
  /** The other pods that use, or will use, resources of the node. */
  readonly others: readonly Pod[];
  /** The UIDs of the other pods that are terminating. */
  readonly ending: ReadonlySet<PodUid>;
  /** The current pressure conditions of the node, such as MemoryPressure and DiskPressure. */
  readonly pressures: readonly string[];
  readonly isShuttingDown: boolean;
  /** Whether the runtime supports the supplemental groups policy Strict. */
  readonly strictGroups: boolean;
  readonly tolerationRules: TolerationRules;
  /** Whether the node supports pod-level resources. */
  readonly podLevelResources: boolean;
  /** The features the node declares; undefined if they are not checked. */
  readonly declaredFeatures: ReadonlySet<string> | undefined;
  /** Why the sysctls of the pod are not allowed; undefined if they are allowed. */
  readonly sysctlProblem?: string | undefined;
  /** Why the host ports of the pod are not allowed; undefined if they are allowed. */
  readonly nodePortProblem?: string | undefined;
  /** Why the AppArmor profile of the pod cannot be applied; undefined if it can be applied. */
  readonly appArmorProblem?: string | undefined;
  /**
   * The state of the allocation of exclusive resources: pending or rejected; undefined if the pod
   * requests none or they are allocated.
   */
  readonly allocation?: 'pending' | Rejection | undefined;
}

/**
 * Evaluates whether the pod may run on this node. Pure. If several reasons apply, the first one is
 * reported, in the order of the Go kubelet.
 */
export function evaluatePod(pod: Pod, facts: AdmissionFacts): Evaluation {
  if (facts.standing === 'restored') return { kind: 'admit' };
  const before = firstOf(
    pressureRejection(pod, facts.pressures, facts.tolerationRules),
    named('SysctlForbidden', facts.sysctlProblem),
    named('NodePorts', facts.nodePortProblem),
  );
  if (before !== undefined) return { kind: 'reject', rejection: before };
  const { allocation } = facts;
  if (allocation === 'pending') return { kind: 'allocate' };
  if (allocation !== undefined) return { kind: 'reject', rejection: allocation };
  const evaluation = evaluateOnNode(pod, facts);
  // Final rejections are checked before preempting or waiting: no victim is killed for a pod that
  // is rejected anyway.
  const after = evaluation.kind === 'reject' ? undefined : finalRejection(pod, facts);
  return after === undefined ? evaluation : { kind: 'reject', rejection: after };
}

/** Reasons that no released resource can remove are evaluated first, before any preemption. */
function evaluateOnNode(pod: Pod, facts: AdmissionFacts): Evaluation {
  const { node } = facts;
  if (node === undefined) return refuse('InvalidNodeInfo', 'Kubelet cannot get node info.');
  const fixed = systemRejection(pod) ?? groupsRejection(pod, facts);
  if (fixed !== undefined) return { kind: 'reject', rejection: fixed };
  const failures = failuresOf(pod, node, facts, facts.others);
  const [first] = failures;
  if (first === undefined) return { kind: 'admit' };
  const rejection = rejectionOf(first);
  if (failures.every(isAffinity)) return { kind: 'fetch-node', rejection };
  const staying = facts.others.filter(({ metadata: { uid } }) => !facts.ending.has(uid));
  const lasting = failuresOf(pod, node, facts, staying);
  if (lasting.length === 0) return { kind: 'wait-for-termination', rejection };
  return isCriticalPod(pod)
    ? evaluateCriticalPod(pod, staying, lasting, rejection)
    : { kind: 'reject', rejection };
}

function failuresOf(pod: Pod, node: Node, facts: AdmissionFacts, others: readonly Pod[]): readonly Failure[] {
  const { tolerationRules, standing } = facts;
  const failures = predicateFailures(pod, { node, others, tolerationRules });
  return standing === 'admitted-before' ? failures.filter((one) => !appliesToNewPodsOnly(one)) : failures;
}

/** A critical pod is not rejected for insufficient resources if preemption can release enough. */
function evaluateCriticalPod(
  pod: Pod,
  others: readonly Pod[],
  failures: readonly Failure[],
  rejection: Rejection,
): Evaluation {
  const mismatch = failures.find(({ kind }) => kind === 'mismatch');
  if (mismatch !== undefined) return { kind: 'reject', rejection: rejectionOf(mismatch) };
  const short = failures.filter((one): one is Shortage => one.kind === 'shortage');
  const choice = chooseVictims(pod, others, short);
  if (choice.found) {
    const { victims } = choice;
    return { kind: 'preempt', preemption: { victims, resource: short[0]?.resource ?? '', rejection } };
  }
  const cause = `no set of running pods found to reclaim resources: ${choice.lacking}`;
  return refuse(
    'UnexpectedAdmissionError',
    'Unexpected error while attempting to recover from admission failure: preemption: ' +
      `error finding a set of pods to preempt: ${cause}`,
  );
}

const system = 'linux';

function systemRejection({ metadata, spec }: Pod): Rejection | undefined {
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

/**
 * A pod with supplementalGroupsPolicy Strict is rejected if the runtime does not support this
 * policy, because such a runtime would also add the groups of the image.
 */
function groupsRejection({ spec }: Pod, { strictGroups }: AdmissionFacts): Rejection | undefined {
  const isStrict = spec.securityContext?.supplementalGroupsPolicy === 'Strict';
  if (!isStrict || strictGroups) return undefined;
  return {
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
  };
}

function finalRejection(pod: Pod, facts: AdmissionFacts): Rejection | undefined {
  // The AppArmor profile of a pod that has already run was applied when it started, so it is not
  // checked again.
  const isPending = (pod.status.phase ?? 'Pending') === 'Pending';
  return firstOf(
    isPending ? named('AppArmor', facts.appArmorProblem) : undefined,
    !facts.podLevelResources && hasPodLevelResources(pod)
      ? { reason: 'PodLevelResourcesNotSupported', message: 'PodLevelResources feature gate is disabled' }
      : undefined,
    featureRejection(pod, facts.declaredFeatures),
    facts.isShuttingDown
      ? { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' }
      : undefined,
  );
}

/**
 * The node features that the pod needs; a node that does not declare all of them rejects the pod.
 */
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

function featureRejection(pod: Pod, declared: ReadonlySet<string> | undefined): Rejection | undefined {
  if (declared === undefined) return undefined;
  const lacking = features.filter(([name, needs]) => !declared.has(name) && needs(pod)).map(([name]) => name);
  if (lacking.length === 0) return undefined;
  const message = `Pod requires node features that are not available: ${lacking.join(', ')}`;
  return { reason: 'PodFeatureUnsupported', message };
}

function named(reason: string, message: string | undefined): Rejection | undefined {
  return message === undefined ? undefined : { reason, message };
}

function firstOf(...rejections: readonly (Rejection | undefined)[]): Rejection | undefined {
  return rejections.find((one) => one !== undefined);
}
