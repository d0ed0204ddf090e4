import type { FieldPath, Volume } from '../../kinds/index.ts';
import { descendingPath, dnsLabel, dnsSubdomain } from './names.ts';
import {
  checkChoice,
  checkForm,
  checkPresent,
  checkRange,
  checkText,
  missing,
  named,
  type Report,
  type TextRule,
  tooLong,
  unsupported,
  wrong,
} from './report.ts';

/** Validates volumes of network and cloud storage. */
export function checkStorageSource(report: Report, path: FieldPath, volume: Volume): void {
  for (const [kind, fields] of Object.entries(needed)) {
    const source = volume[kind as keyof Volume] as Readonly<Record<string, unknown>> | undefined;
    if (source === undefined) continue;
    for (const field of fields) if (isEmpty(source[field])) missing(report, path.child(kind, field));
  }
  checkPaths(report, path, volume);
  checkIscsi(report, path, volume);
  checkFibreChannel(report, path.child('fc'), volume.fc);
  checkFlex(report, path.child('flexVolume'), volume.flexVolume);
  checkQuobyte(report, path.child('quobyte'), volume.quobyte);
  checkAzureDisk(report, path.child('azureDisk'), volume.azureDisk);
  checkFlocker(report, path.child('flocker'), volume.flocker);
  checkSecretRefs(report, path, volume);
}

/** The required fields of each volume type. */
const needed = {
  gitRepo: ['repository'],
  nfs: ['server', 'path'],
  glusterfs: ['endpoints', 'path'],
  iscsi: ['targetPortal', 'iqn'],
  gcePersistentDisk: ['pdName'],
  awsElasticBlockStore: ['volumeID'],
  rbd: ['monitors', 'image'],
  cinder: ['volumeID'],
  cephfs: ['monitors'],
  flexVolume: ['driver'],
  azureFile: ['secretName', 'shareName'],
  azureDisk: ['diskName', 'diskURI'],
  vsphereVolume: ['volumePath'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  storageos: ['volumeName'],
  quobyte: ['registry', 'volume'],
  csi: ['driver'],
} as const;

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
}

const byte = [0, 255] as const;

function checkPaths(report: Report, path: FieldPath, volume: Volume): void {
  checkText(report, path.child('gitRepo', 'directory'), volume.gitRepo?.directory, descendingPath);
  if (volume.nfs !== undefined && !volume.nfs.path?.startsWith('/'))
    wrong(report, path.child('nfs', 'path'), volume.nfs.path, 'must be an absolute path');
  checkDriver(report, path.child('csi', 'driver'), volume.csi?.driver ?? '');
  checkText(report, path.child('storageos', 'volumeName'), volume.storageos?.volumeName, dnsLabel);
  checkText(report, path.child('storageos', 'volumeNamespace'), volume.storageos?.volumeNamespace, dnsLabel);
  for (const kind of ['gcePersistentDisk', 'awsElasticBlockStore'] as const)
    checkPartition(report, path.child(kind, 'partition'), volume[kind]?.partition ?? 0);
}

/**
 * Validates the partition of a volume. 0 means not set; the error names 1 as the lowest valid
 * value.
 */
function checkPartition(report: Report, path: FieldPath, partition: number): void {
  if (partition < 0 || partition > 255)
    wrong(report, path, partition, 'must be between 1 and 255, inclusive');
}

const longestDriver = 63;

/** The name of a CSI driver is a DNS subdomain; its case is ignored. */
function checkDriver(report: Report, path: FieldPath, name: string): void {
  if (name.length > longestDriver) tooLong(report, path, longestDriver);
  if (name !== '') for (const why of dnsSubdomain(name.toLowerCase())) wrong(report, path, name, why);
}

const initiators = [
  /^iqn\.\d{4}-\d{2}\.([\w.-]+)(:[^,;*&$|\s]+)$/,
  /^eui\.[\da-fA-F]{16}$/,
  /^naa\.[\da-fA-F]{32}$/,
];

const iscsiName: TextRule = (text) => {
  if (initiators.some((shape) => shape.test(text))) return [];
  return [
    /^(?:iqn|eui|naa)/.test(text)
      ? 'must be valid format'
      : 'must be valid format starting with iqn, eui, or naa',
  ];
};

function checkIscsi(report: Report, path: FieldPath, volume: Volume): void {
  const { iscsi } = volume;
  if (iscsi === undefined) return;
  const at = path.child('iscsi');
  checkText(report, at.child('iqn'), iscsi.iqn, iscsiName);
  checkRange(report, at.child('lun'), iscsi.lun, byte);
  if ((iscsi.chapAuthDiscovery || iscsi.chapAuthSession) && iscsi.secretRef === undefined)
    missing(report, at.child('secretRef'));
  if (iscsi.initiatorName === undefined) return;
  checkForm(
    named(report, at.child('initiatorname')),
    at.child('initiatorName'),
    iscsi.initiatorName,
    iscsiName,
  );
  if (`${volume.name}:${iscsi.targetPortal}`.length > 64)
    wrong(
      report,
      path.child('name'),
      volume.name,
      'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.',
    );
}

function checkFibreChannel(report: Report, path: FieldPath, fc: Volume['fc']): void {
  if (fc === undefined) return;
  const [names, ids] = [fc.targetWWNs ?? [], fc.wwids ?? []];
  const at = path.child('targetWWNs');
  if (names.length === 0 && ids.length === 0)
    missing(report, at, 'must specify either targetWWNs or wwids, but not both');
  if (names.length > 0 && ids.length > 0)
    wrong(report, at, names, 'targetWWNs and wwids can not be specified simultaneously');
  if (names.length === 0) return;
  if (fc.lun === undefined) missing(report, path.child('lun'), 'lun is required if targetWWNs is specified');
  else checkRange(report, path.child('lun'), fc.lun, byte);
}

function checkFlex(report: Report, path: FieldPath, flex: Volume['flexVolume']): void {
  for (const key of Object.keys(flex?.options ?? {})) {
    const domain = `.${(key.includes('/') ? (key.split('/')[0] ?? '') : key).toLowerCase()}`;
    if (domain.endsWith('.kubernetes.io') || domain.endsWith('.k8s.io'))
      wrong(report, path.child('options').key(key), key, 'kubernetes.io and k8s.io namespaces are reserved');
  }
}

function checkQuobyte(report: Report, path: FieldPath, quobyte: Volume['quobyte']): void {
  if (quobyte === undefined || !quobyte.registry) return;
  if ((quobyte.tenant ?? '').length > 64)
    missing(report, path.child('tenant'), 'must be a UUID and may not exceed a length of 64 characters');
  if (!quobyte.registry.split(',').every((pair) => /^(?:\[[^\]]*\]|[^:]*):[^:]*$/.test(pair)))
    wrong(
      report,
      path.child('registry'),
      quobyte.registry,
      'must be a host:port pair or multiple pairs separated by commas',
    );
}

const managedDisk = {
  start: '/subscriptions/',
  whole: '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}',
};
const blobDisk = {
  start: 'https://',
  whole: 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd',
};

function checkAzureDisk(report: Report, path: FieldPath, disk: Volume['azureDisk']): void {
  if (disk === undefined) return;
  const modes = ['None', 'ReadOnly', 'ReadWrite'];
  checkChoice(report, path.child('cachingMode'), disk.cachingMode, { of: modes, absent: 'allowed' });
  const kinds = ['Dedicated', 'Managed', 'Shared'];
  checkChoice(report, path.child('kind'), disk.kind, { of: kinds, absent: 'allowed' });
  const { start, whole } = disk.kind === 'Managed' ? managedDisk : blobDisk;
  if (disk.kind !== undefined && !disk.diskURI?.startsWith(start))
    unsupported(report, path.child('diskURI'), disk.diskURI, [whole]);
}

function checkFlocker(report: Report, path: FieldPath, flocker: Volume['flocker']): void {
  if (flocker === undefined) return;
  if (!flocker.datasetName && !flocker.datasetUUID)
    missing(report, path, 'one of datasetName and datasetUUID is required');
  if (flocker.datasetName && flocker.datasetUUID)
    wrong(report, path, 'resource', 'datasetName and datasetUUID can not be specified simultaneously');
  if (flocker.datasetName?.includes('/'))
    wrong(report, path.child('datasetName'), flocker.datasetName, "must not contain '/'");
}

function checkSecretRefs(report: Report, path: FieldPath, volume: Volume): void {
  for (const kind of ['cinder', 'storageos'] as const)
    if (volume[kind]?.secretRef !== undefined)
      checkPresent(report, path.child(kind, 'secretRef', 'name'), volume[kind].secretRef.name);
  const published = volume.csi?.nodePublishSecretRef;
  if (published === undefined) return;
  const at = path.child('csi', 'nodePublishSecretRef', 'name');
  checkPresent(report, at, published.name);
  checkText(named(report, path.child('csi', 'name')), at, published.name, dnsSubdomain);
}
