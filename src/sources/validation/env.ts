import type {
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  FieldPath,
  FileKeySelector,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import {
  annotationKey,
  configKey,
  dnsLabel,
  dnsSubdomain,
  envName,
  pathWithoutBacksteps,
  qualifiedName,
} from './names.ts';
import { checkName, checkPresent, checkText, missing, type Report, wrong } from './report.ts';

export function checkEnv(report: Report, path: FieldPath, variables: readonly EnvVar[] = []): void {
  variables.forEach((variable, index) => {
    const at = path.index(index);
    checkName(report, at.child('name'), variable.name, envName);
    if (variable.valueFrom !== undefined)
      checkValueFrom(report, at.child('valueFrom'), variable.valueFrom, variable.value ?? '');
  });
}

function checkValueFrom(report: Report, path: FieldPath, from: EnvVarSource, value: string): void {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = from;
  if (fieldRef) checkFieldRef(report, path.child('fieldRef'), fieldRef, envFields);
  if (resourceFieldRef) checkResourceRef(report, path.child('resourceFieldRef'), resourceFieldRef, 'env');
  if (configMapKeyRef) checkKeyRef(report, path.child('configMapKeyRef'), configMapKeyRef);
  if (secretKeyRef) checkKeyRef(report, path.child('secretKeyRef'), secretKeyRef);
  if (fileKeyRef) checkFileKeyRef(report, path.child('fileKeyRef'), fileKeyRef);
  const given = Object.values(from).filter((source) => source !== undefined).length;
  if (given === 0)
    report(path, 'must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef');
  else if (value !== '') report(path, 'must not be set beside a value');
  else if (given > 1) report(path, 'must have only one source');
}

/** Fields of the pod an environment variable may show, besides single labels and annotations. */
const envFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];

/** Fields of the pod a file may show. */
export const volumeFields: readonly string[] = [
  'metadata.name',
  'metadata.namespace',
  'metadata.labels',
  'metadata.annotations',
  'metadata.uid',
];

export function checkFieldRef(
  report: Report,
  path: FieldPath,
  selector: ObjectFieldSelector,
  fields: readonly string[],
): void {
  const at = path.child('fieldPath');
  if (selector.apiVersion !== 'v1') wrong(report, path.child('apiVersion'), selector.apiVersion, 'be v1');
  checkPresent(report, at, selector.fieldPath);
  if (!selector.fieldPath) return;
  const subscript = /^(.+)\['(.*)'\]$/.exec(selector.fieldPath);
  if (subscript === null) {
    // An older name of the same field.
    const name = selector.fieldPath === 'spec.host' ? 'spec.nodeName' : selector.fieldPath;
    if (!fields.includes(name)) wrong(report, at, selector.fieldPath, `be one of ${fields.join(', ')}`);
    return;
  }
  const [, map = '', key = ''] = subscript;
  if (map === 'metadata.annotations') checkName(report, at, key, annotationKey);
  else if (map === 'metadata.labels') checkName(report, at, key, qualifiedName);
  else
    wrong(report, at, selector.fieldPath, 'have a key only behind metadata.labels or metadata.annotations');
}

const resources = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [
  `limits.${name}`,
  `requests.${name}`,
]);
const hugePages = /^(?:limits|requests)\.hugepages-/;
const byteDivisors = ['1', ...'kMGTPE', ...[...'KMGTPE'].map((unit) => `${unit}i`)].map((unit) =>
  unit === '1' ? unit : `1${unit}`,
);

export function checkResourceRef(
  report: Report,
  path: FieldPath,
  selector: ResourceFieldSelector,
  where: 'env' | 'volume',
): void {
  if (where === 'volume') checkPresent(report, path.child('containerName'), selector.containerName);
  const { resource } = selector;
  if (!resource) missing(report, path.child('resource'));
  else if (!resources.includes(resource) && !hugePages.test(resource))
    wrong(report, path.child('resource'), resource, `be one of ${resources.join(', ')}`);
  checkDivisor(report, path.child('divisor'), resource, selector.divisor);
}

function checkDivisor(report: Report, path: FieldPath, resource: string, divisor: string | undefined): void {
  if (divisor === undefined || tryParseQuantity(divisor)?.nanos === 0n) return;
  const allowed = resource.endsWith('.cpu') ? ['1m', '1'] : byteDivisors;
  if (!allowed.includes(divisor)) wrong(report, path, divisor, `be one of ${allowed.join(', ')}`);
}

function checkKeyRef(
  report: Report,
  path: FieldPath,
  ref: { readonly name?: string | undefined; readonly key: string },
): void {
  checkName(report, path.child('name'), ref.name, dnsSubdomain);
  checkName(report, path.child('key'), ref.key, configKey);
}

function checkFileKeyRef(report: Report, path: FieldPath, ref: FileKeySelector): void {
  checkName(report, path.child('key'), ref.key, envName);
  checkName(report, path.child('volumeName'), ref.volumeName, dnsLabel);
  checkName(report, path.child('path'), ref.path, pathWithoutBacksteps);
}

export function checkEnvFrom(report: Report, path: FieldPath, sources: readonly EnvFromSource[] = []): void {
  sources.forEach((source, index) => {
    const at = path.index(index);
    const { configMapRef, secretRef } = source;
    checkText(report, at.child('prefix'), source.prefix, envName);
    if (configMapRef) checkName(report, at.child('configMapRef', 'name'), configMapRef.name, dnsSubdomain);
    if (secretRef) checkName(report, at.child('secretRef', 'name'), secretRef.name, dnsSubdomain);
    if (!configMapRef && !secretRef) report(at, 'must have one of configMapRef and secretRef');
    if (configMapRef && secretRef) report(at, 'must have only one of configMapRef and secretRef');
  });
}
