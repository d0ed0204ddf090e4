import type {
  Affinity,
  FieldPath,
  LabelSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from '../../kinds/index.ts';
import type { FeatureGate } from '../rules.ts';
import { checkLabelSelector, checkLabels, checkSelectorValues } from './metadata.ts';
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkRange,
  checkText,
  type Report,
  refuse,
  repeated,
  wrong,
} from './report.ts';

/** Where a pod may run. A static pod is already where it runs, but what it says must make sense all the same. */
export function checkScheduling(report: Report, path: FieldPath, spec: PodSpec, enabled: FeatureGate): void {
  checkLabels(report, path.child('nodeSelector'), spec.nodeSelector);
  checkAffinity(report, path.child('affinity'), spec.affinity);
  checkTolerations(report, path.child('tolerations'), spec.tolerations, enabled);
  checkSpread(report, path.child('topologySpreadConstraints'), spec.topologySpreadConstraints);
  checkText(report, path.child('nodeName'), spec.nodeName, dnsSubdomain);
  checkText(report, path.child('priorityClassName'), spec.priorityClassName, dnsSubdomain);
  const policies = ['PreemptLowerPriority', 'Never'];
  checkChoice(report, path.child('preemptionPolicy'), spec.preemptionPolicy, {
    of: policies,
    absent: 'allowed',
  });
  checkGates(report, path, spec);
  const group = spec.schedulingGroup;
  if (group)
    checkName(report, path.child('schedulingGroup', 'podGroupName'), group.podGroupName, dnsSubdomain);
}

function checkGates(report: Report, path: FieldPath, spec: PodSpec): void {
  spec.readinessGates?.forEach((gate, index) => {
    const at = path.child('readinessGates').index(index).child('conditionType');
    checkName(report, at, gate.conditionType, qualifiedName);
  });
  const names = new Set<string>();
  spec.schedulingGates?.forEach(({ name }, index) => {
    const at = path.child('schedulingGates').index(index).child('name');
    checkName(report, at, name, qualifiedName);
    if (names.has(name)) repeated(report, at, name);
    names.add(name);
  });
  if (names.size > 0 && spec.nodeName)
    refuse(report, path.child('schedulingGates'), 'on a pod that has a node');
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
const weights = [1, 100] as const;

function checkAffinity(report: Report, path: FieldPath, affinity: Affinity | undefined): void {
  if (affinity === undefined) return;
  const { nodeAffinity: node } = affinity;
  const terms = node?.[required]?.nodeSelectorTerms;
  const at = path.child('nodeAffinity');
  if (terms?.length === 0) report(at.child(required, 'nodeSelectorTerms'), 'must have at least one term');
  terms?.forEach((term, index) => {
    checkNodeTerm(report, at.child(required, 'nodeSelectorTerms').index(index), term, 'checked');
  });
  node?.[preferred]?.forEach((term, index) => {
    checkRange(report, at.child(preferred).index(index).child('weight'), term.weight, weights);
    checkNodeTerm(report, at.child(preferred).index(index).child('preference'), term.preference, 'free');
  });
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    checkPodTerms(report, path.child(kind, required), affinity[kind]?.[required]);
    checkWeightedTerms(report, path.child(kind, preferred), affinity[kind]?.[preferred]);
  }
}

function checkNodeTerm(
  report: Report,
  path: FieldPath,
  term: NodeSelectorTerm,
  values: 'checked' | 'free',
): void {
  term.matchExpressions?.forEach((expression, index) => {
    const at = path.child('matchExpressions').index(index);
    checkSelectorValues(report, at, expression, 'nodes');
    checkName(report, at.child('key'), expression.key, qualifiedName);
    if (values === 'free') return;
    expression.values?.forEach((value, position) => {
      checkText(report, at.child('values').index(position), value, labelValue);
    });
  });
  term.matchFields?.forEach((expression, index) => {
    checkNodeField(report, path.child('matchFields').index(index), expression);
  });
}

/** The only field nodes can be chosen by is their name. */
function checkNodeField(
  report: Report,
  path: FieldPath,
  { key, operator, values = [] }: NodeSelectorRequirement,
): void {
  checkChoice(report, path.child('operator'), operator, { of: ['In', 'NotIn'], absent: 'refused' });
  if (values.length !== 1) report(path.child('values'), 'must be exactly one value');
  if (key !== 'metadata.name') wrong(report, path.child('key'), key, 'be metadata.name');
  values.forEach((value, index) => {
    checkName(report, path.child('values').index(index), value, dnsSubdomain);
  });
}

function checkPodTerms(report: Report, path: FieldPath, terms: readonly PodAffinityTerm[] = []): void {
  terms.forEach((term, index) => {
    checkPodTerm(report, path.index(index), term);
  });
}

function checkWeightedTerms(
  report: Report,
  path: FieldPath,
  terms: readonly WeightedPodAffinityTerm[] = [],
): void {
  terms.forEach((term, index) => {
    checkRange(report, path.index(index).child('weight'), term.weight, weights);
    checkPodTerm(report, path.index(index).child('podAffinityTerm'), term.podAffinityTerm);
  });
}

function checkPodTerm(report: Report, path: FieldPath, term: PodAffinityTerm): void {
  checkLabelSelector(report, path.child('labelSelector'), term.labelSelector);
  checkLabelSelector(report, path.child('namespaceSelector'), term.namespaceSelector);
  term.namespaces?.forEach((name, index) => {
    checkName(report, path.child('namespaces').index(index), name, dnsLabel);
  });
  checkName(report, path.child('topologyKey'), term.topologyKey, qualifiedName);
  checkLabelKeys(report, path.child('matchLabelKeys'), term.matchLabelKeys, term.labelSelector);
  checkLabelKeys(report, path.child('mismatchLabelKeys'), term.mismatchLabelKeys, term.labelSelector);
  term.matchLabelKeys?.forEach((key, index) => {
    if (term.mismatchLabelKeys?.includes(key))
      wrong(report, path.child('matchLabelKeys').index(index), key, 'not be among mismatchLabelKeys too');
  });
}

function checkLabelKeys(
  report: Report,
  path: FieldPath,
  keys: readonly string[] = [],
  selector: LabelSelector | undefined,
): void {
  if (keys.length > 0 && selector === undefined) refuse(report, path, 'without a labelSelector');
  const mentions = (key: string) =>
    (Object.hasOwn(selector?.matchLabels ?? {}, key) ? 1 : 0) +
    (selector?.matchExpressions ?? []).filter((expression) => expression.key === key).length;
  keys.forEach((key, index) => {
    checkName(report, path.index(index), key, qualifiedName);
    // The key itself ends up in the selector once, when a scheduler sees to it.
    if (mentions(key) > 1) wrong(report, path.index(index), key, 'not be in the labelSelector too');
  });
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function checkTolerations(
  report: Report,
  path: FieldPath,
  tolerations: readonly Toleration[] = [],
  enabled: FeatureGate,
): void {
  const compared = enabled('TaintTolerationComparisonOperators') ? ['Lt', 'Gt'] : [];
  tolerations.forEach((toleration, index) => {
    const at = path.index(index);
    const { key, operator = '', value = '', effect } = toleration;
    checkText(report, at.child('key'), key, qualifiedName);
    if (!key && operator !== 'Exists')
      wrong(report, at.child('operator'), operator, 'be Exists without a key');
    if (operator !== '')
      checkChoice(report, at.child('operator'), operator, {
        of: ['Equal', 'Exists', ...compared],
        absent: 'refused',
      });
    if (operator === 'Exists' && value !== '') refuse(report, at.child('value'), 'with the operator Exists');
    if (operator === '' || operator === 'Equal') checkText(report, at.child('value'), value, labelValue);
    if (compared.includes(operator) && !isInt64(value))
      wrong(report, at.child('value'), value, 'be a whole number');
    if (effect) checkChoice(report, at.child('effect'), effect, { of: effects, absent: 'refused' });
    if (toleration.tolerationSeconds !== undefined && effect !== 'NoExecute')
      wrong(report, at.child('effect'), effect ?? '', 'be NoExecute when tolerationSeconds is set');
  });
}

function isInt64(text: string): boolean {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return false;
  return BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

function checkSpread(
  report: Report,
  path: FieldPath,
  constraints: readonly TopologySpreadConstraint[] = [],
): void {
  const pairs = new Set<string>();
  constraints.forEach((constraint, index) => {
    const at = path.index(index);
    const { topologyKey, whenUnsatisfiable, minDomains } = constraint;
    checkRange(report, at.child('maxSkew'), constraint.maxSkew, [1, Number.POSITIVE_INFINITY]);
    checkPresent(report, at.child('topologyKey'), topologyKey);
    const actions = ['DoNotSchedule', 'ScheduleAnyway'];
    checkChoice(report, at.child('whenUnsatisfiable'), whenUnsatisfiable, { of: actions, absent: 'refused' });
    const pair = `${topologyKey} ${whenUnsatisfiable}`;
    if (pairs.has(pair)) repeated(report, at, pair);
    pairs.add(pair);
    checkRange(report, at.child('minDomains'), minDomains, [1, Number.POSITIVE_INFINITY]);
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule')
      refuse(report, at.child('minDomains'), 'unless whenUnsatisfiable is DoNotSchedule');
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const)
      checkChoice(report, at.child(field), constraint[field], { of: ['Ignore', 'Honor'], absent: 'allowed' });
    checkLabelKeys(report, at.child('matchLabelKeys'), constraint.matchLabelKeys, constraint.labelSelector);
    checkLabelSelector(report, at.child('labelSelector'), constraint.labelSelector);
  });
}
