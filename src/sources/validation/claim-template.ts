import type {
  FieldPath,
  PersistentVolumeClaimSpec,
  PersistentVolumeClaimTemplate,
  TypedObjectReference,
} from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import { checkAnnotations, checkLabelSelector, checkLabels } from './metadata.ts';
import { dnsLabel, dnsSubdomain } from './names.ts';
import { checkChoice, checkPresent, checkText, missing, type Report, refuse, wrong } from './report.ts';

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
    if (value !== undefined) refuse(report, path.child('metadata', field), 'in a claim template');
  checkClaimSpec(report, path.child('spec'), template.spec);
}

const accessModes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];

function checkClaimSpec(report: Report, path: FieldPath, spec: PersistentVolumeClaimSpec): void {
  checkAccessModes(report, path.child('accessModes'), spec.accessModes ?? []);
  checkLabelSelector(report, path.child('selector'), spec.selector);
  const storage = spec.resources?.requests?.['storage'];
  const at = path.child('resources', 'requests').key('storage');
  if (storage === undefined) missing(report, at);
  else if ((tryParseQuantity(storage)?.nanos ?? 0n) <= 0n) wrong(report, at, storage, 'be more than 0');
  checkText(report, path.child('storageClassName'), spec.storageClassName, dnsSubdomain);
  checkText(report, path.child('volumeAttributesClassName'), spec.volumeAttributesClassName, dnsSubdomain);
  checkChoice(report, path.child('volumeMode'), spec.volumeMode, {
    of: ['Block', 'Filesystem'],
    absent: 'allowed',
  });
  checkDataSources(report, path, spec);
}

function checkAccessModes(report: Report, path: FieldPath, modes: readonly string[]): void {
  if (modes.length === 0) missing(report, path);
  modes.forEach((mode, index) => {
    checkChoice(report, path.index(index), mode, { of: accessModes, absent: 'refused' });
  });
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod'))
    report(path, 'must not have ReadWriteOncePod beside other modes');
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
  if (dataSourceRef.namespace) refuse(report, path.child('dataSource'), 'beside dataSourceRef.namespace');
  else if (
    (['apiGroup', 'kind', 'name'] as const).some((field) => dataSource[field] !== dataSourceRef[field])
  )
    report(path.child('dataSource'), 'must say the same as dataSourceRef');
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
    wrong(report, path.child('kind'), source.kind, 'be PersistentVolumeClaim without an apiGroup');
}
