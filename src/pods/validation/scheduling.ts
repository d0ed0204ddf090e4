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
import { checkLabelSelector, checkSelectorValues } from './metadata.ts';
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './names.ts';
import {
  checkChoice,
  checkForm,
  checkText,
  missing,
  named,
  type Report,
  refuse,
  repeated,
  unsupported,
  wrong,
} from './report.ts';

/** Validates scheduling gates, which prevent the scheduling of a pod until they are removed. */
export function checkGates(report: Report, path: FieldPath, spec: PodSpec): void {
  spec.readinessGates?.forEach((gate, index) => {
    const at = path.child('readinessGates').index(index).child('conditionType');
    checkForm(report, at, gate.conditionType, qualifiedName);
  });
  const names = new Set<string>();
  spec.schedulingGates?.forEach(({ name }, index) => {
    const at = path.child('schedulingGates').index(index);
    checkForm(named(report, at), at.child('name'), name, qualifiedName);
    if (names.has(name)) repeated(named(report, at), at.child('name'), name);
    names.add(name);
  });
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';

function checkWeight(report: Report, path: FieldPath, weight: number): void {
  if (weight < 1 || weight > 100) wrong(report, path, weight, 'must be in the range 1-100');
}

export function checkAffinity(report: Report, path: FieldPath, affinity: Affinity | undefined): void {
  if (affinity === undefined) return;
  const { nodeAffinity: node } = affinity;
  const terms = node?.[required]?.nodeSelectorTerms;
  const at = path.child('nodeAffinity');
  if (terms?.length === 0)
    missing(report, at.child(required, 'nodeSelectorTerms'), 'must have at least one node selector term');
  terms?.forEach((term, index) => {
    checkNodeTerm(report, at.child(required, 'nodeSelectorTerms').index(index), term, 'checked');
  });
  node?.[preferred]?.forEach((term, index) => {
    checkWeight(report, at.child(preferred).index(index).child('weight'), term.weight);
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
    checkForm(report, at.child('key'), expression.key, qualifiedName);
    if (values === 'free') return;
    expression.values?.forEach((value, position) => {
      checkText(report, at.child('values').index(position), value, labelValue);
    });
  });
  term.matchFields?.forEach((expression, index) => {
    checkNodeField(report, path.child('matchFields').index(index), expression);
  });
}

/** matchFields of node selectors support metadata.name only. */
function checkNodeField(
  report: Report,
  path: FieldPath,
  { key, operator, values = [] }: NodeSelectorRequirement,
): void {
  if (operator !== 'In' && operator !== 'NotIn')
    wrong(report, path.child('operator'), operator, 'not a valid selector operator');
  else if (values.length !== 1)
    missing(
      report,
      path.child('values'),
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    );
  if (key !== 'metadata.name') wrong(report, path.child('key'), key, 'not a valid field selector key');
  else
    values.forEach((value, index) => {
      checkForm(report, path.child('values').index(index), value, dnsSubdomain);
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
    checkWeight(report, path.index(index).child('weight'), term.weight);
    checkPodTerm(report, path.index(index).child('podAffinityTerm'), term.podAffinityTerm);
  });
}

function checkPodTerm(report: Report, path: FieldPath, term: PodAffinityTerm): void {
  checkLabelSelector(report, path.child('labelSelector'), term.labelSelector);
  checkLabelSelector(report, path.child('namespaceSelector'), term.namespaceSelector);
  term.namespaces?.forEach((name, index) => {
    checkForm(named(report, path.child('namespace')), path.child('namespaces').index(index), name, dnsLabel);
  });
  checkMatchKeys(report, path, term);
  const topology = path.child('topologyKey');
  if (!term.topologyKey) missing(report, topology, 'can not be empty');
  checkForm(report, topology, term.topologyKey, qualifiedName);
}

function checkMatchKeys(report: Report, path: FieldPath, term: MatchKeys): void {
  const { matchLabelKeys = [], mismatchLabelKeys = [], labelSelector } = term;
  checkLabelKeys(report, path.child('matchLabelKeys'), matchLabelKeys, labelSelector);
  checkLabelKeys(report, path.child('mismatchLabelKeys'), mismatchLabelKeys, labelSelector);
  checkMentions(report, path, matchLabelKeys, labelSelector);
  matchLabelKeys.forEach((key, index) => {
    if (mismatchLabelKeys.includes(key))
      wrong(
        report,
        path.child('matchLabelKeys').index(index),
        key,
        'exists in both matchLabelKeys and mismatchLabelKeys',
      );
  });
}

type MatchKeys = Pick<PodAffinityTerm, 'matchLabelKeys' | 'mismatchLabelKeys' | 'labelSelector'>;

function checkLabelKeys(
  report: Report,
  path: FieldPath,
  keys: readonly string[] = [],
  selector: LabelSelector | undefined,
): void {
  if (keys.length > 0 && selector === undefined) {
    refuse(report, path, 'must not be specified when labelSelector is not set');
    return;
  }
  keys.forEach((key, index) => {
    checkForm(report, path.index(index), key, qualifiedName);
  });
}

/**
 * Rejects keys of matchLabelKeys that are also in the label selector. One occurrence is valid,
 * because the API server itself adds each key to the selector once.
 */
function checkMentions(
  report: Report,
  path: FieldPath,
  keys: readonly string[],
  selector: LabelSelector | undefined,
): void {
  const seen = new Set(Object.keys(selector?.matchLabels ?? {}));
  for (const { key } of selector?.matchExpressions ?? []) {
    const index = keys.lastIndexOf(key);
    if (index >= 0 && seen.has(key))
      wrong(
        named(report, path.index(index)),
        path.child('matchLabelKeys').index(index),
        key,
        'exists in both matchLabelKeys and labelSelector',
      );
    seen.add(key);
  }
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function checkTolerations(
  report: Report,
  path: FieldPath,
  tolerations: readonly Toleration[] = [],
  enabled: FeatureGate,
): void {
  const comparing = enabled('TaintTolerationComparisonOperators') ? 'allowed' : 'refused';
  tolerations.forEach((toleration, index) => {
    const at = path.index(index);
    const { key, operator = '', effect = '' } = toleration;
    checkText(report, at.child('key'), key, qualifiedName);
    if (!key && operator !== 'Exists')
      wrong(
        report,
        at.child('operator'),
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      );
    if (toleration.tolerationSeconds !== undefined && effect !== 'NoExecute')
      wrong(report, at.child('effect'), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    checkTolerated(report, at, toleration, comparing);
    if (effect) checkChoice(report, at.child('effect'), effect, { of: effects, absent: 'refused' });
  });
}

/** The error for an invalid toleration value is reported at the operator. */
function checkTolerated(
  report: Report,
  path: FieldPath,
  { operator = '', value = '' }: Toleration,
  comparing: 'allowed' | 'refused',
): void {
  const at = path.child('operator');
  const known = ['Equal', 'Exists'];
  const tell = named(report, at);
  if (operator === '' || operator === 'Equal') {
    const told = labelValue(value);
    if (told.length > 0) wrong(tell, path.child('value'), value, told.join(';'));
  } else if (operator === 'Exists') {
    if (value !== '')
      wrong(tell, path.child('value'), value, "value must be empty when `operator` is 'Exists'");
  } else if (operator !== 'Lt' && operator !== 'Gt') unsupported(report, at, operator, known);
  else if (comparing === 'refused') unsupported(report, at, operator, [...known, 'Lt', 'Gt']);
  else if (!isInt64(value))
    wrong(report, path.child('value'), value, 'must be a valid decimal integer in canonical form');
}

function isInt64(text: string): boolean {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return false;
  return BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

export function checkSpread(
  report: Report,
  path: FieldPath,
  constraints: readonly TopologySpreadConstraint[] = [],
): void {
  const keyOf = ({ topologyKey, whenUnsatisfiable }: TopologySpreadConstraint) =>
    JSON.stringify([topologyKey, whenUnsatisfiable]);
  const lastOf = new Map(constraints.map((constraint, index) => [keyOf(constraint), index]));
  constraints.forEach((constraint, index) => {
    const at = path.index(index);
    const { topologyKey, whenUnsatisfiable, minDomains } = constraint;
    checkPositive(report, at.child('maxSkew'), constraint.maxSkew);
    if (!topologyKey) missing(report, at.child('topologyKey'), 'can not be empty');
    const of = ['DoNotSchedule', 'ScheduleAnyway'];
    checkChoice(report, at.child('whenUnsatisfiable'), whenUnsatisfiable, { of, absent: 'unsupported' });
    if (lastOf.get(keyOf(constraint)) !== index)
      repeated(
        named(report, at.child('{topologyKey, whenUnsatisfiable}')),
        at,
        `{${topologyKey}, ${whenUnsatisfiable}}`,
      );
    if (minDomains !== undefined)
      checkMinDomains(report, at.child('minDomains'), minDomains, whenUnsatisfiable);
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const)
      checkChoice(report, at.child(field), constraint[field], { of: ['Honor', 'Ignore'], absent: 'allowed' });
    checkMatchKeys(report, at, constraint);
    checkLabelSelector(report, at.child('labelSelector'), constraint.labelSelector);
  });
}

function checkMinDomains(report: Report, path: FieldPath, least: number, action: string): void {
  checkPositive(report, path, least);
  if (action !== 'DoNotSchedule')
    wrong(report, path, least, `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`);
}

function checkPositive(report: Report, path: FieldPath, value: number): void {
  if (!(value > 0)) wrong(report, path, value ?? 0, 'must be greater than zero');
}
