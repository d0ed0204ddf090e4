import type { FieldPath, Volume } from '../../kinds/index.ts';
import { csiDriverName, descendingPath, dnsLabel, dnsSubdomain } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkRange,
  checkText,
  missing,
  type Report,
  type TextRule,
  wrong,
} from './report.ts';

/** Volumes on storage of the network or of a cloud. */
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

/** What each kind cannot do without. */
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
  checkText(report, path.child('nfs', 'path'), volume.nfs?.path, (text) =>
    text.startsWith('/') ? undefined : 'be an absolute path',
  );
  checkText(report, path.child('csi', 'driver'), volume.csi?.driver, csiDriverName);
  checkText(report, path.child('storageos', 'volumeName'), volume.storageos?.volumeName, dnsLabel);
  checkText(report, path.child('storageos', 'volumeNamespace'), volume.storageos?.volumeNamespace, dnsLabel);
  for (const kind of ['gcePersistentDisk', 'awsElasticBlockStore'] as const)
    checkRange(report, path.child(kind, 'partition'), volume[kind]?.partition, byte);
}

const initiators = [
  /^iqn\.\d{4}-\d{2}\.([\w.-]+)(:[^,;*&$|\s]+)$/,
  /^eui\.[\da-fA-F]{16}$/,
  /^naa\.[\da-fA-F]{32}$/,
];

const iscsiName: TextRule = (text) =>
  initiators.some((shape) => shape.test(text))
    ? undefined
    : 'be an iSCSI name such as iqn.2015-02.example.com:disk, eui.… or naa.…';

function checkIscsi(report: Report, path: FieldPath, volume: Volume): void {
  const { iscsi } = volume;
  if (iscsi === undefined) return;
  const at = path.child('iscsi');
  checkText(report, at.child('iqn'), iscsi.iqn, iscsiName);
  checkRange(report, at.child('lun'), iscsi.lun, byte);
  if ((iscsi.chapAuthDiscovery || iscsi.chapAuthSession) && iscsi.secretRef === undefined)
    missing(report, at.child('secretRef'), 'with CHAP');
  if (iscsi.initiatorName === undefined) return;
  checkName(report, at.child('initiatorName'), iscsi.initiatorName, iscsiName);
  if (`${volume.name}:${iscsi.targetPortal}`.length > 64)
    report(
      path.child('name'),
      'must with iscsi.targetPortal be at most 63 characters long when initiatorName is set',
    );
}

function checkFibreChannel(report: Report, path: FieldPath, fc: Volume['fc']): void {
  if (fc === undefined) return;
  const [names, ids] = [fc.targetWWNs ?? [], fc.wwids ?? []];
  if ((names.length === 0) === (ids.length === 0)) report(path, 'must have either targetWWNs or wwids');
  if (names.length === 0) return;
  if (fc.lun === undefined) missing(report, path.child('lun'), 'beside targetWWNs');
  else checkRange(report, path.child('lun'), fc.lun, byte);
}

function checkFlex(report: Report, path: FieldPath, flex: Volume['flexVolume']): void {
  for (const key of Object.keys(flex?.options ?? {})) {
    const domain = `.${(key.includes('/') ? (key.split('/')[0] ?? '') : key).toLowerCase()}`;
    if (domain.endsWith('.kubernetes.io') || domain.endsWith('.k8s.io'))
      report(path.child('options').key(key), 'must not be under kubernetes.io or k8s.io');
  }
}

function checkQuobyte(report: Report, path: FieldPath, quobyte: Volume['quobyte']): void {
  if (quobyte === undefined || !quobyte.registry) return;
  if ((quobyte.tenant ?? '').length > 64) report(path.child('tenant'), 'must be at most 64 characters long');
  if (!quobyte.registry.split(',').every((pair) => /^(?:\[[^\]]*\]|[^:]*):[^:]*$/.test(pair)))
    wrong(report, path.child('registry'), quobyte.registry, 'be pairs of host and port, such as host:7861');
}

function checkAzureDisk(report: Report, path: FieldPath, disk: Volume['azureDisk']): void {
  if (disk === undefined) return;
  const modes = ['None', 'ReadOnly', 'ReadWrite'];
  checkChoice(report, path.child('cachingMode'), disk.cachingMode, { of: modes, absent: 'allowed' });
  const kinds = ['Shared', 'Dedicated', 'Managed'];
  checkChoice(report, path.child('kind'), disk.kind, { of: kinds, absent: 'allowed' });
  const start = disk.kind === 'Managed' ? '/subscriptions/' : 'https://';
  if (disk.diskURI && !disk.diskURI.startsWith(start))
    wrong(report, path.child('diskURI'), disk.diskURI, `start with ${start}`);
}

function checkFlocker(report: Report, path: FieldPath, flocker: Volume['flocker']): void {
  if (flocker === undefined) return;
  if (!flocker.datasetName === !flocker.datasetUUID)
    report(path, 'must have either datasetName or datasetUUID');
  if (flocker.datasetName?.includes('/')) report(path.child('datasetName'), 'must not contain /');
}

function checkSecretRefs(report: Report, path: FieldPath, volume: Volume): void {
  for (const kind of ['cinder', 'storageos'] as const)
    if (volume[kind]?.secretRef !== undefined)
      checkPresent(report, path.child(kind, 'secretRef', 'name'), volume[kind].secretRef.name);
  const published = volume.csi?.nodePublishSecretRef;
  if (published !== undefined)
    checkName(report, path.child('csi', 'nodePublishSecretRef', 'name'), published.name, dnsSubdomain);
}
