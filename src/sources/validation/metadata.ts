import type { FieldPath, LabelSelector, ObjectMeta, OwnerReference } from '../../kinds/index.ts';
import { mayBePodUid } from '../../pods/index.ts';
import { annotationKey, dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './names.ts';
import {
  checkName,
  checkPresent,
  checkRange,
  checkText,
  missing,
  type Report,
  refuse,
  show,
  wrong,
} from './report.ts';

/** Directories are named by it. */
function uid(text: string): string | undefined {
  if (mayBePodUid(text)) return undefined;
  return "be letters, digits, '.', '_' and '-', begin with a letter or digit, and be no longer than 253";
}

type Texts = Readonly<Record<string, string>>;

const mostAnnotationBytes = 256 * 1024;

export function checkMetadata(report: Report, path: FieldPath, meta: ObjectMeta): void {
  checkText(report, path.child('generateName'), meta.generateName?.replace(/-$/, ''), dnsSubdomain);
  checkName(report, path.child('name'), meta.name, dnsSubdomain);
  checkName(report, path.child('namespace'), meta.namespace, dnsLabel);
  checkText(report, path.child('uid'), meta.uid, uid);
  checkRange(report, path.child('generation'), meta.generation, [0, Number.POSITIVE_INFINITY]);
  checkLabels(report, path.child('labels'), meta.labels);
  checkAnnotations(report, path.child('annotations'), meta.annotations);
  checkOwners(report, path.child('ownerReferences'), meta.ownerReferences ?? []);
  checkFinalizers(report, path.child('finalizers'), meta.finalizers ?? []);
}

export function checkLabels(report: Report, path: FieldPath, labels: Texts = {}): void {
  for (const [key, value] of Object.entries(labels)) {
    const must = qualifiedName(key);
    if (must !== undefined) report(path.key(key), `must have a key that would ${must}`);
    checkText(report, path.key(key), value, labelValue);
  }
}

export function checkAnnotations(report: Report, path: FieldPath, annotations: Texts = {}): void {
  for (const key of Object.keys(annotations)) {
    const must = annotationKey(key);
    if (must !== undefined) report(path.key(key), `must have a key that would ${must}`);
  }
  const size = Object.entries(annotations).flat().join('');
  if (Buffer.byteLength(size) > mostAnnotationBytes)
    report(path, `must not be larger than ${mostAnnotationBytes} bytes together`);
}

function checkOwners(report: Report, path: FieldPath, owners: readonly OwnerReference[]): void {
  owners.forEach((owner, index) => {
    const at = path.index(index);
    checkPresent(report, at.child('apiVersion'), owner.apiVersion);
    checkPresent(report, at.child('kind'), owner.kind);
    checkPresent(report, at.child('name'), owner.name);
    checkPresent(report, at.child('uid'), owner.uid);
    if (owner.apiVersion === 'v1' && owner.kind === 'Event')
      report(at, 'must not be an Event: it owns nothing');
  });
  const controllers = owners.filter((owner) => owner.controller === true);
  if (controllers.length > 1)
    report(
      path,
      `must have at most one controller: ${controllers.map((owner) => show(owner.name)).join(', ')}`,
    );
}

function checkFinalizers(report: Report, path: FieldPath, finalizers: readonly string[]): void {
  finalizers.forEach((name, index) => {
    checkName(report, path.index(index), name, qualifiedName);
  });
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    report(path, 'must not have both orphan and foregroundDeletion');
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
    checkName(report, at.child('key'), expression.key, qualifiedName);
    expression.values?.forEach((value, position) => {
      checkText(report, at.child('values').index(position), value, labelValue);
    });
  });
}

interface Expression {
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}

/** How many values an operator takes. Comparisons are for nodes only. */
export function checkSelectorValues(
  report: Report,
  path: FieldPath,
  { operator, values = [] }: Expression,
  of: 'labels' | 'nodes',
): void {
  const at = path.child('values');
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) missing(report, at, `with the operator ${operator}`);
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) refuse(report, at, `with the operator ${operator}`);
  } else if (of === 'nodes' && (operator === 'Gt' || operator === 'Lt')) {
    if (values.length !== 1) report(at, `must be exactly one value with the operator ${operator}`);
  } else {
    const known = ['In', 'NotIn', 'Exists', 'DoesNotExist', ...(of === 'nodes' ? ['Gt', 'Lt'] : [])];
    wrong(report, path.child('operator'), operator, `be one of ${known.join(', ')}`);
  }
}
