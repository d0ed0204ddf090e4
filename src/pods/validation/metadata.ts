import type { FieldPath, LabelSelector, ObjectMeta, OwnerReference } from '../../kinds/index.ts';
import { mayBePodUid } from '../pod.ts';
import { annotationKey, dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './names.ts';
import {
  checkForm,
  checkName,
  checkNotNegative,
  checkText,
  missing,
  named,
  type Report,
  refuse,
  type TextRule,
  tooLong,
  wrong,
} from './report.ts';

/** The UID of a static pod is the name of its directories. */
const uid: TextRule = (text) =>
  mayBePodUid(text)
    ? []
    : ["must be letters, digits, '.', '_' and '-', begin with a letter or digit, and be no longer than 253"];

type Texts = Readonly<Record<string, string>>;

const mostAnnotationBytes = 256 * 1024;

export function checkMetadata(report: Report, path: FieldPath, meta: ObjectMeta): void {
  checkGenerateName(report, path.child('generateName'), meta.generateName ?? '');
  if (meta.name) checkText(report, path.child('name'), meta.name, dnsSubdomain);
  else missing(report, path.child('name'), 'name or generateName is required');
  checkName(report, path.child('namespace'), meta.namespace, dnsLabel);
  checkText(report, path.child('uid'), meta.uid, uid);
  checkNotNegative(report, path.child('generation'), meta.generation);
  checkLabels(report, path.child('labels'), meta.labels);
  checkAnnotations(report, path.child('annotations'), meta.annotations);
  checkOwners(report, path.child('ownerReferences'), meta.ownerReferences ?? []);
  checkFinalizers(report, path.child('finalizers'), meta.finalizers ?? []);
}

/**
 * The trailing dash of generateName is removed before validation, because the rest of the name
 * follows it.
 */
function checkGenerateName(report: Report, path: FieldPath, name: string): void {
  if (name !== '') for (const why of dnsSubdomain(name.replace(/-$/, 'a'))) wrong(report, path, name, why);
}

export function checkLabels(report: Report, path: FieldPath, labels: Texts = {}): void {
  const tell = named(report, path);
  for (const [key, value] of Object.entries(labels)) {
    checkForm(tell, path.key(key), key, qualifiedName);
    checkText(tell, path.key(key), value, labelValue);
  }
}

export function checkAnnotations(report: Report, path: FieldPath, annotations: Texts = {}): void {
  for (const key of Object.keys(annotations))
    checkForm(named(report, path), path.key(key), key, annotationKey);
  const size = Object.entries(annotations).flat().join('');
  if (Buffer.byteLength(size) > mostAnnotationBytes) tooLong(report, path, mostAnnotationBytes);
}

function checkOwners(report: Report, path: FieldPath, owners: readonly OwnerReference[]): void {
  let first: string | undefined;
  owners.forEach((owner, index) => {
    checkOwner(report, path.index(index), owner, path);
    if (owner.controller !== true) return;
    const name = `${owner.kind}/${owner.name}`;
    const both = `Found "true" in references for ${first} and ${name}`;
    if (first !== undefined)
      wrong(report, path, owners, `Only one reference can have Controller set to true. ${both}`);
    first ??= name;
  });
}

function checkOwner(report: Report, path: FieldPath, owner: OwnerReference, list: FieldPath): void {
  for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
    if (owner[field]) continue;
    const why = field === 'apiVersion' ? 'version must not be empty' : 'must not be empty';
    wrong(named(report, list.child(field)), path.child(field), owner[field], why);
  }
  if (owner.apiVersion === 'v1' && owner.kind === 'Event')
    wrong(named(report, list), path, owner, '/v1, Kind=Event is disallowed from being an owner');
}

/** The standard finalizers of Kubernetes; all others must have a domain. */
const knownFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion'];

function checkFinalizers(report: Report, path: FieldPath, finalizers: readonly string[]): void {
  finalizers.forEach((name, index) => {
    checkForm(named(report, path), path.index(index), name, qualifiedName);
  });
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    wrong(report, path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set');
  finalizers.forEach((name, index) => {
    if (!name.includes('/') && !knownFinalizers.includes(name))
      wrong(
        report,
        path.index(index),
        name,
        'name is neither a standard finalizer name nor is it fully qualified',
      );
  });
}

export function checkLabelSelector(
  report: Report,
  path: FieldPath,
  selector: LabelSelector | undefined,
): void {
  if (selector === undefined) return;
  checkLabels(report, path.child('matchLabels'), selector.matchLabels);
  selector.matchExpressions?.forEach((expression, index) => {
    const at = path.child('matchExpressions').index(index);
    checkSelectorValues(report, at, expression, 'labels');
    checkForm(report, at.child('key'), expression.key, qualifiedName);
    expression.values?.forEach((value, position) => {
      checkText(report, at.child('values').index(position), value, labelValue);
    });
  });
}

interface Expression {
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}

/**
 * Validates the number of values for the operator of a selector. The operators Gt and Lt are valid
 * in node selectors only.
 */
export function checkSelectorValues(
  report: Report,
  path: FieldPath,
  { operator, values = [] }: Expression,
  of: 'labels' | 'nodes',
): void {
  const at = path.child('values');
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) missing(report, at, "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0)
      refuse(report, at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (of === 'nodes' && (operator === 'Gt' || operator === 'Lt')) {
    if (values.length !== 1)
      missing(report, at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else wrong(report, path.child('operator'), operator, 'not a valid selector operator');
}
