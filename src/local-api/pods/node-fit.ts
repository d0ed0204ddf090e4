import type { JsonObject } from '../../api/index.ts';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodSpec,
  Taint,
  Toleration,
} from '../../kinds/index.ts';
import type { StoredObject } from '../api/index.ts';
import { typed } from './pod-object.ts';

/** Why a node does not match a pod, in the words of kube-scheduler; undefined if it does. */
export function nodeMismatch(pod: StoredObject, node: StoredObject): string | undefined {
  const { spec } = typed(pod);
  const { unschedulable, taints = [] } = (node.spec ?? {}) as NodeSpec;
  const tolerations = spec.tolerations ?? [];
  if (unschedulable === true && !isTolerated(cordoned, tolerations)) return 'node(s) were unschedulable';
  const isBarred = (taint: Taint) => taint.effect !== 'PreferNoSchedule' && !isTolerated(taint, tolerations);
  if (taints.some(isBarred)) return 'node(s) had untolerated taint(s)';
  return matchesSelection(spec, node) ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

interface NodeSpec {
  readonly unschedulable?: boolean;
  readonly taints?: readonly Taint[];
}

/** The taint of a cordoned node. */
const cordoned: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(({ key = '', operator = '', value = '', effect = '' }) => {
    if (effect !== '' && effect !== taint.effect) return false;
    if (key !== '' && key !== taint.key) return false;
    return (
      operator === 'Exists' || ((operator === '' || operator === 'Equal') && value === (taint.value ?? ''))
    );
  });
}

/** Whether the node matches the node selector and the required node affinity. */
function matchesSelection(spec: PodSpec, node: StoredObject): boolean {
  const labels = node.metadata.labels ?? {};
  const isSelected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!isSelected || required === undefined) return isSelected;
  return required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** An empty node selector term matches no node. */
function matchesTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  node: StoredObject,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const labels: JsonObject = node.metadata.labels ?? {};
  return (
    matchExpressions.every((one) => matchesRequirement(one, labels[one.key])) &&
    matchFields.every((one) => one.key === 'metadata.name' && matchesRequirement(one, node.metadata.name))
  );
}

function matchesRequirement({ operator, values = [] }: NodeSelectorRequirement, actual: unknown): boolean {
  const text = typeof actual === 'string' ? actual : undefined;
  switch (operator) {
    case 'In':
      return text !== undefined && values.includes(text);
    case 'NotIn':
      return text === undefined || !values.includes(text);
    case 'Exists':
      return text !== undefined;
    case 'DoesNotExist':
      return text === undefined;
    case 'Gt':
    case 'Lt':
      return comparesAs(operator, text, values[0]);
    default:
      return false;
  }
}

function comparesAs(operator: 'Gt' | 'Lt', actual: string | undefined, bound: string | undefined): boolean {
  const whole = /^-?\d+$/;
  if (actual === undefined || bound === undefined || !whole.test(actual) || !whole.test(bound)) return false;
  return operator === 'Gt' ? BigInt(actual) > BigInt(bound) : BigInt(actual) < BigInt(bound);
}

/** The selected node, or why no node matches the pod. */
export type Placement =
  | { readonly kind: 'on'; readonly node: string }
  | { readonly kind: 'nowhere'; readonly why: string };

export function findNode(pod: StoredObject, nodes: readonly StoredObject[]): Placement {
  if (nodes.length === 0) return { kind: 'nowhere', why: 'no nodes available to schedule pods' };
  const misfits = new Map<string, number>();
  for (const node of nodes) {
    const why = nodeMismatch(pod, node);
    if (why === undefined) return { kind: 'on', node: node.metadata.name };
    misfits.set(why, (misfits.get(why) ?? 0) + 1);
  }
  const reasons = [...misfits].map(([why, count]) => `${count} ${why}`).toSorted();
  return { kind: 'nowhere', why: `0/${nodes.length} nodes are available: ${reasons.join(', ')}.` };
}
