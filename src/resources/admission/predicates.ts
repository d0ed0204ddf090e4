import type { Node } from '../../kinds/index.ts';
import { isStaticPod, type Pod } from '../../pods/index.ts';
import { type Shortage, shortages } from './fit.ts';
import { portsTaken } from './host-ports.ts';
import type { Refusal } from './judgement.ts';
import { matchesNode } from './node-affinity.ts';
import { isTolerated, type TolerationRules } from './taints.ts';

/** A rule about the node that the pod breaks, or that breaks the pod. */
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

/** Everything that speaks against the pod on this node; the first is the one that is told. */
export function predicateFailures(
  pod: Pod,
  { node, others, tolerationRules }: PredicateFacts,
): readonly Failure[] {
  const broken: readonly (readonly [Mismatch['predicate'], boolean])[] = [
    ['NodeAffinity', !matchesNode(pod, node)],
    ['NodeName', isElsewhere(pod, node)],
    ['NodePorts', portsTaken(pod, others)],
    ['TaintToleration', !isStaticPod(pod) && !toleratesNode(pod, node, tolerationRules)],
  ];
  const mismatches = broken
    .filter(([, isBroken]) => isBroken)
    .map(([predicate]): Mismatch => ({ kind: 'mismatch', predicate, text: texts[predicate] }));
  return [...shortages(pod, node, others), ...mismatches];
}

/** What does not apply to a pod that has been taken before: the node may have changed around it. */
const forNewcomers: ReadonlySet<string> = new Set<Mismatch['predicate']>(['NodeAffinity', 'TaintToleration']);

export function isForNewcomers(failure: Failure): boolean {
  return failure.kind === 'shortage' || forNewcomers.has(failure.predicate);
}

export function isAffinity(failure: Failure): boolean {
  return failure.kind === 'mismatch' && failure.predicate === 'NodeAffinity';
}

export function refusalOf(failure: Failure): Refusal {
  if (failure.kind === 'mismatch') {
    const { predicate, text } = failure;
    return { reason: predicate, message: `Predicate ${predicate} failed: ${text}` };
  }
  const { resource, requested, used, capacity } = failure;
  const amounts = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message: `Node didn't have enough resource: ${resource}, ${amounts}` };
}

function isElsewhere({ spec: { nodeName = '' } }: Pod, node: Node): boolean {
  return nodeName !== '' && nodeName !== node.metadata?.name;
}

/** Only what would drive the pod out again counts here; the rest was for the scheduler to see. */
function toleratesNode(pod: Pod, node: Node, rules: TolerationRules): boolean {
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
  return taints.every((taint) => isTolerated(taint, pod.spec.tolerations, rules));
}
