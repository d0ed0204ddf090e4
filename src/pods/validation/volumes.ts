import type {
  FieldPath,
  PersistentVolumeClaimSpec,
  PersistentVolumeClaimTemplate,
  PodSpec,
  TypedObjectReference,
  Volume,
  VolumeSource,
} from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import { checkPullPolicy } from './containers.ts';
import { checkDownwardItems, checkKeys, checkMode, checkProjected } from './files.ts';
import { checkAnnotations, checkLabelSelector, checkLabels } from './metadata.ts';
import type { KnownVolumes } from './mounts.ts';
import { dnsLabel, dnsSubdomain, pathWithoutBacksteps } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkText,
  missing,
  named,
  type Report,
  refuse,
  repeated,
  wrong,
} from './report.ts';
import { checkStorageSource } from './storage.ts';

/** Validates the volumes and returns the valid ones, which containers may mount. */
export function checkVolumes(report: Report, path: FieldPath, spec: PodSpec, podName: string): KnownVolumes {
  const sound = new Map<string, VolumeSource>();
  spec.volumes?.forEach((volume, index) => {
    let mistakes = 0;
    const counting: Report = (problem) => {
      mistakes++;
      report(problem);
    };
    checkVolume(counting, path.index(index), volume, podName);
    if (volume.name && sound.has(volume.name))
      repeated(counting, path.index(index).child('name'), volume.name);
    if (mistakes === 0) sound.set(volume.name, volume);
  });
  checkOwnClaims(report, path, spec, podName);
  return sound;
}

function checkVolume(report: Report, path: FieldPath, volume: Volume, podName: string): void {
  const { name, ...source } = volume;
  const given = Object.entries(source).flatMap(([kind, part]) => (part === undefined ? [] : [kind]));
  if (given.length === 0) missing(report, path, 'must specify a volume type');
  // Only the first of several sources of a volume is validated, because the intended one is
  // unknown.
  const order = given.toSorted((a, b) => rank(a) - rank(b));
  for (const kind of order.slice(1))
    refuse(report, path.child(kind), 'may not specify more than 1 volume type');
  const first: VolumeSource =
    order[0] === undefined ? {} : { [order[0]]: source[order[0] as keyof VolumeSource] };
  checkFileSources(report, path, first);
  checkObjectSources(report, path, first);
  checkStorageSource(report, path, { ...first, name });
  if (first.ephemeral) checkEphemeral(report, path, volume, podName);
  checkName(report, path.child('name'), name, dnsLabel);
}

/** The volume types that the API server checks first, in its order; the other types follow. */
const firstKinds = ['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret'];

function rank(kind: string): number {
  const at = firstKinds.indexOf(kind);
  return at < 0 ? firstKinds.length : at;
}

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

function checkFileSources(report: Report, path: FieldPath, source: VolumeSource): void {
  const { emptyDir, hostPath, downwardAPI, projected, image } = source;
  if (emptyDir?.sizeLimit !== undefined && (tryParseQuantity(emptyDir.sizeLimit)?.nanos ?? 0n) < 0n)
    refuse(report, path.child('emptyDir', 'sizeLimit'), 'SizeLimit field must be a valid resource quantity');
  if (hostPath) {
    const at = path.child('hostPath');
    checkName(report, at.child('path'), hostPath.path, pathWithoutBacksteps);
    checkChoice(report, at.child('type'), hostPath.type, { of: hostPathTypes, absent: 'allowed' });
  }
  if (downwardAPI) {
    checkMode(report, path.child('downwardAPI', 'defaultMode'), downwardAPI.defaultMode);
    const at = path.child('downwardAPI');
    checkDownwardItems(report, at.child('items'), downwardAPI.items, at);
  }
  if (projected) checkProjected(report, path.child('projected'), projected);
  if (image) {
    checkPresent(report, path.child('image', 'reference'), image.reference);
    checkPullPolicy(report, path.child('image', 'pullPolicy'), image.pullPolicy);
  }
}

function checkObjectSources(report: Report, path: FieldPath, source: VolumeSource): void {
  const { secret, configMap, persistentVolumeClaim } = source;
  if (secret) {
    checkPresent(report, path.child('secret', 'secretName'), secret.secretName);
    checkMode(report, path.child('secret', 'defaultMode'), secret.defaultMode);
    checkKeys(report, path.child('secret', 'items'), secret.items);
  }
  if (configMap) {
    checkPresent(report, path.child('configMap', 'name'), configMap.name);
    checkMode(report, path.child('configMap', 'defaultMode'), configMap.defaultMode);
    checkKeys(report, path.child('configMap', 'items'), configMap.items);
  }
  if (persistentVolumeClaim)
    checkPresent(report, path.child('persistentVolumeClaim', 'claimName'), persistentVolumeClaim.claimName);
}

function checkEphemeral(report: Report, path: FieldPath, volume: Volume, podName: string): void {
  const template = volume.ephemeral?.volumeClaimTemplate;
  const at = path.child('ephemeral', 'volumeClaimTemplate');
  if (template === undefined) missing(report, at);
  else checkClaimTemplate(report, at, template);
  if (!volume.name || !podName) return;
  const claim = `${podName}-${volume.name}`;
  for (const why of dnsSubdomain(claim))
    wrong(report, path.child('name'), volume.name, `PVC name ${JSON.stringify(claim)}: ${why}`);
}

/** The claim of an ephemeral volume must not be used as a persistentVolumeClaim volume, too. */
function checkOwnClaims(report: Report, path: FieldPath, spec: PodSpec, podName: string): void {
  const own = new Set(
    spec.volumes?.filter(({ ephemeral }) => ephemeral !== undefined).map(({ name }) => `${podName}-${name}`),
  );
  spec.volumes?.forEach(({ persistentVolumeClaim: claim }, index) => {
    if (claim !== undefined && own.has(claim.claimName))
      wrong(
        report,
        path.index(index).child('persistentVolumeClaim', 'claimName'),
        claim.claimName,
        'must not reference a PVC that gets created for an ephemeral volume',
      );
  });
}

/** Validates the claim template of an ephemeral volume. */
function checkClaimTemplate(report: Report, path: FieldPath, template: PersistentVolumeClaimTemplate): void {
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
