import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';

type Labels = Readonly<Record<string, string>>;

/** Whether the node matches the node selector and the required node affinity of the pod. */
export function matchesNode(pod: Pod, node: Node): boolean {
  const { labels = {} } = node.metadata ?? {};
  const selected = Object.entries(pod.spec.nodeSelector ?? {});
  if (!selected.every(([key, value]) => labelOf(labels, key) === value)) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelector(required, node);
}

/** Whether the node matches at least one of the node selector terms. */
export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, { metadata }: Node): boolean {
  const { labels = {}, name = '' } = metadata ?? {};
  return nodeSelectorTerms.some((term) => matchesTerm(term, labels, name));
}

/** A node selector term without requirements, or with an invalid requirement, matches no node. */
function matchesTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  labels: Labels,
  name: string,
): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  return (
    matchExpressions.every((one) => matchesLabel(one, labelOf(labels, one.key))) &&
    matchFields.every((one) => matchesField(one, name))
  );
}

function matchesLabel(
  { operator, values = [] }: NodeSelectorRequirement,
  label: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return values.length > 0 && (label === undefined || !values.includes(label));
    case 'Exists':
      return values.length === 0 && label !== undefined;
    case 'DoesNotExist':
      return values.length === 0 && label === undefined;
    case 'Gt':
    case 'Lt':
      return isBeyond(operator, label, values);
    default:
      return false;
  }
}

function isBeyond(operator: 'Gt' | 'Lt', label: string | undefined, values: readonly string[]): boolean {
  const [limit, ...more] = values.map(wholeNumber);
  const value = wholeNumber(label);
  if (limit === undefined || value === undefined || more.length > 0) return false;
  return operator === 'Gt' ? value > limit : value < limit;
}

/** The only supported field of matchFields is metadata.name, with one value. */
function matchesField({ key, operator, values = [] }: NodeSelectorRequirement, name: string): boolean {
  if (values.length !== 1) return false;
  const isIt = key === 'metadata.name' && values[0] === name;
  return operator === 'In' ? isIt : operator === 'NotIn' && !isIt;
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d{1,19}$/.test(text) ? BigInt(text.replace('+', '')) : undefined;
}

function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
