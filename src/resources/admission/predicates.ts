import type { Node } from '../../kinds/index.ts';
import { isStaticPod, type Pod } from '../../pods/index.ts';
import type { Rejection } from './evaluation.ts';
import { type Shortage, shortages } from './fit.ts';
import { hasHostPortConflict } from './host-ports.ts';
import { matchesNode } from './node-affinity.ts';
import { isTolerated, type TolerationRules } from './taints.ts';

/** A mismatch between pod and node: node affinity, node name, host ports or untolerated taints. */
export interface Mismatch {
  readonly kind: 'mismatch';
  readonly predicate: 'NodeAffinity' | 'NodeName' | 'NodePorts' | 'TaintToleration';
  readonly text: string;
}

export type Failure = Shortage | Mismatch;

export interface PredicateFacts {
  readonly node: Node;
  readonly others: readonly Pod[];
  readonly tolerationRules: TolerationRules;
}

const texts: Readonly<Record<Mismatch['predicate'], string>> = {
  NodeAffinity: "node(s) didn't match Pod's node affinity/selector",
  NodeName: "node(s) didn't match the requested node name",
  NodePorts: "node(s) didn't have free ports for the requested pod ports",
  TaintToleration: "node(s) had taints that the pod didn't tolerate",
};

/** Returns all reasons why the pod cannot run on this node; the first one is reported. */
export function predicateFailures(
  pod: Pod,
  { node, others, tolerationRules }: PredicateFacts,
): readonly Failure[] {
  const broken: readonly (readonly [Mismatch['predicate'], boolean])[] = [
    ['NodeAffinity', !matchesNode(pod, node)],
    ['NodeName', isAssignedElsewhere(pod, node)],
    ['NodePorts', hasHostPortConflict(pod, others)],
    ['TaintToleration', !isStaticPod(pod) && !toleratesNode(pod, node, tolerationRules)],
  ];
  const mismatches = broken
    .filter(([, isBroken]) => isBroken)
    .map(([predicate]): Mismatch => ({ kind: 'mismatch', predicate, text: texts[predicate] }));
  return [...shortages(pod, node, others), ...mismatches];
}

/**
 * Predicates that are checked only for new pods. Like a shortage of resources, a failure of these
 * predicates does not reject a pod that was admitted before: labels, taints and allocatable
 * resources of the node may have changed since its admission.
 */
const newPodsOnly: ReadonlySet<string> = new Set<Mismatch['predicate']>(['NodeAffinity', 'TaintToleration']);

export function appliesToNewPodsOnly(failure: Failure): boolean {
  return failure.kind === 'shortage' || newPodsOnly.has(failure.predicate);
}

export function isAffinity(failure: Failure): boolean {
  return failure.kind === 'mismatch' && failure.predicate === 'NodeAffinity';
}

export function rejectionOf(failure: Failure): Rejection {
  if (failure.kind === 'mismatch') {
    const { predicate, text } = failure;
    return { reason: predicate, message: `Predicate ${predicate} failed: ${text}` };
  }
  const { resource, requested, used, capacity } = failure;
  const amounts = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message: `Node didn't have enough resource: ${resource}, ${amounts}` };
}

function isAssignedElsewhere({ spec: { nodeName = '' } }: Pod, node: Node): boolean {
  return nodeName !== '' && nodeName !== node.metadata?.name;
}

/** The kubelet checks only NoExecute taints; the scheduler checks the others. */
function toleratesNode(pod: Pod, node: Node, rules: TolerationRules): boolean {
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
  return taints.every((taint) => isTolerated(taint, pod.spec.tolerations, rules));
}
