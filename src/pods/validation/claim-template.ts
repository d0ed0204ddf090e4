import type {
  FieldPath,
  PersistentVolumeClaimSpec,
  PersistentVolumeClaimTemplate,
  TypedObjectReference,
} from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import { checkAnnotations, checkLabelSelector, checkLabels } from './metadata.ts';
import { dnsLabel, dnsSubdomain } from './names.ts';
import {
  checkChoice,
  checkPresent,
  checkText,
  missing,
  named,
  type Report,
  refuse,
  wrong,
} from './report.ts';

/** The claim that is made for an ephemeral volume. */
export function checkClaimTemplate(
  report: Report,
  path: FieldPath,
  template: PersistentVolumeClaimTemplate,
): void {
  const { labels, annotations, ...others } = template.metadata ?? {};
  checkLabels(report, path.child('metadata', 'labels'), labels);
  checkAnnotations(report, path.child('metadata', 'annotations'), annotations);
  for (const [field, value] of Object.entries(others))
    if (value !== undefined) refuse(report, path.child('metadata', field), 'not allowed in a claim template');
  checkClaimSpec(report, path.child('spec'), template.spec);
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

function checkClaimSpec(report: Report, path: FieldPath, spec: PersistentVolumeClaimSpec): void {
  checkAccessModes(report, path.child('accessModes'), spec.accessModes ?? []);
  checkLabelSelector(report, path.child('selector'), spec.selector);
  const storage = spec.resources?.requests?.['storage'];
  const at = path.child('resources', 'requests').key('storage');
  const tell = named(report, path.child('resources').key('storage'));
  if (storage === undefined) missing(tell, at);
  else if ((tryParseQuantity(storage)?.nanos ?? 0n) <= 0n)
    wrong(tell, at, storage, 'must be greater than zero');
  checkText(report, path.child('storageClassName'), spec.storageClassName, dnsSubdomain);
  checkText(report, path.child('volumeAttributesClassName'), spec.volumeAttributesClassName, dnsSubdomain);
  checkChoice(report, path.child('volumeMode'), spec.volumeMode, {
    of: ['Block', 'Filesystem'],
    absent: 'allowed',
  });
  checkDataSources(report, path, spec);
}

function checkAccessModes(report: Report, path: FieldPath, modes: readonly string[]): void {
  if (modes.length === 0) missing(report, path, 'at least 1 access mode is required');
  modes.forEach((mode, index) => {
    checkChoice(named(report, path), path.index(index), mode, { of: accessModes, absent: 'unsupported' });
  });
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod'))
    refuse(report, path, 'may not use ReadWriteOncePod with other access modes');
}

function checkDataSources(
  report: Report,
  path: FieldPath,
  { dataSource, dataSourceRef }: PersistentVolumeClaimSpec,
): void {
  if (dataSource) checkDataSource(report, path.child('dataSource'), dataSource);
  if (dataSourceRef) {
    checkDataSource(report, path.child('dataSourceRef'), dataSourceRef);
    checkText(report, path.child('dataSourceRef', 'namespace'), dataSourceRef.namespace, dnsLabel);
  }
  if (!dataSource || !dataSourceRef) return;
  const at = path.child('dataSource');
  const tell = named(report, path);
  if (dataSourceRef.namespace)
    wrong(tell, at, dataSource, 'may not be specified when dataSourceRef.namespace is specified');
  else if (
    (['apiGroup', 'kind', 'name'] as const).some((field) => dataSource[field] !== dataSourceRef[field])
  )
    wrong(tell, at, dataSource, 'must match dataSourceRef');
}

function checkDataSource(
  report: Report,
  path: FieldPath,
  source: Omit<TypedObjectReference, 'namespace'>,
): void {
  checkPresent(report, path.child('name'), source.name);
  checkPresent(report, path.child('kind'), source.kind);
  checkText(report, path.child('apiGroup'), source.apiGroup, dnsSubdomain);
  if (!source.apiGroup && source.kind !== 'PersistentVolumeClaim')
    wrong(
      named(report, path),
      path.child('kind'),
      source.kind,
      "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
    );
}
