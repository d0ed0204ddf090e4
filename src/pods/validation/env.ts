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
import {
  checkForm,
  checkName,
  checkText,
  missing,
  named,
  type Report,
  unsupported,
  wrong,
} from './report.ts';

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
    wrong(
      report,
      path,
      '',
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
    );
  else if (value !== '') wrong(report, path, '', 'may not be specified when `value` is not empty');
  else if (given > 1) wrong(report, path, '', moreThanOne);
}

const moreThanOne = 'may not have more than one field specified at a time';

/** Pod fields that environment variables can refer to, besides single labels and annotations. */
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

/** Pod fields that files of a downwardAPI volume can refer to. */
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
  const { apiVersion, fieldPath } = selector;
  if (!apiVersion) missing(report, path.child('apiVersion'));
  else if (!fieldPath) missing(report, at);
  else checkFieldPath(report, path, selector, fields);
}

/** All pod fields that can be referred to; where each is allowed is checked separately. */
const knownFields = [
  'metadata.labels',
  'metadata.annotations',
  ...envFields,
  'spec.restartPolicy',
  'status.phase',
];

function checkFieldPath(
  report: Report,
  path: FieldPath,
  { apiVersion, fieldPath }: ObjectFieldSelector,
  fields: readonly string[],
): void {
  const at = path.child('fieldPath');
  const subscript = /^([^[]+)\['(.*)'\]$/s.exec(fieldPath);
  const [, map = '', key = ''] = subscript ?? [];
  // `spec.host` is an older name of the field `spec.nodeName`.
  const name = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath;
  const cannot = (why: string) => wrong(report, at, fieldPath, `error converting fieldPath: ${why}`);
  if (apiVersion !== 'v1') cannot(`unsupported pod version: ${apiVersion}`);
  else if (map === 'metadata.annotations')
    checkForm(named(report, path), at, key.toLowerCase(), annotationKey);
  else if (map === 'metadata.labels') checkForm(named(report, path), at, key, qualifiedName);
  else if (subscript !== null) cannot(`field label does not support subscript: ${fieldPath}`);
  else if (!knownFields.includes(name)) cannot(`field label not supported: ${fieldPath}`);
  else if (!fields.includes(name)) unsupported(report, at, name, fields.toSorted());
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
  const { resource } = selector;
  if (where === 'volume' && !selector.containerName) missing(report, path.child('containerName'));
  else if (!resource) missing(report, path.child('resource'));
  else if (!resources.includes(resource) && !hugePages.test(resource))
    unsupported(report, path.child('resource'), resource, resources.toSorted());
  checkDivisor(report, path.child('divisor'), resource, selector.divisor);
}

function checkDivisor(report: Report, path: FieldPath, resource: string, divisor: string | undefined): void {
  if (divisor === undefined || tryParseQuantity(divisor)?.nanos === 0n) return;
  const kind = /^(?:limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-)/.exec(resource)?.[1];
  if (kind === undefined) return;
  const allowed = kind === 'cpu' ? ['1m', '1'] : byteDivisors;
  if (allowed.includes(divisor)) return;
  const shown = kind === 'cpu' ? '1m and 1' : byteDivisors.join(', ');
  const what = { 'ephemeral-storage': 'local ephemeral storage', 'hugepages-': 'hugepages' }[kind] ?? kind;
  wrong(report, path, resource, `only divisor's values ${shown} are supported with the ${what} resource`);
}

function checkKeyRef(
  report: Report,
  path: FieldPath,
  ref: { readonly name?: string | undefined; readonly key: string },
): void {
  checkForm(report, path.child('name'), ref.name, dnsSubdomain);
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
    const tell = named(report, path);
    if (!configMapRef && !secretRef)
      wrong(tell, at, '', 'must specify one of: `configMapRef` or `secretRef`');
    if (configMapRef && secretRef) wrong(tell, at, '', moreThanOne);
  });
}
