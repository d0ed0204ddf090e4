import type { FieldPath, PodSpec, Volume, VolumeSource } from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import { checkClaimTemplate } from './claim-template.ts';
import { checkPullPolicy } from './containers.ts';
import { checkDownwardItems, checkKeys, checkMode, checkProjected } from './files.ts';
import type { KnownVolumes } from './mounts.ts';
import { dnsLabel, dnsSubdomain, pathWithoutBacksteps } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkText,
  missing,
  type Report,
  refuse,
  repeated,
  wrong,
} from './report.ts';
import { checkStorageSource } from './storage.ts';

/** Answers the volumes containers may mount: those that are sound themselves. */
export function checkVolumes(report: Report, path: FieldPath, spec: PodSpec, podName: string): KnownVolumes {
  const sound = new Map<string, VolumeSource>();
  spec.volumes?.forEach((volume, index) => {
    let mistakes = 0;
    const counting: Report = (field, message) => {
      mistakes++;
      report(field, message);
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
  checkName(report, path.child('name'), name, dnsLabel);
  const given = Object.entries(source).flatMap(([kind, part]) => (part === undefined ? [] : [kind]));
  if (given.length === 0) missing(report, path, 'to a kind of volume');
  for (const kind of given.slice(1)) refuse(report, path.child(kind), `beside ${given[0]}`);
  checkFileSources(report, path, source);
  checkObjectSources(report, path, source);
  checkStorageSource(report, path, volume);
  if (source.ephemeral) checkEphemeral(report, path, volume, podName);
}

const hostPathTypes = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
];

function checkFileSources(report: Report, path: FieldPath, source: VolumeSource): void {
  const { emptyDir, hostPath, downwardAPI, projected, image } = source;
  if (emptyDir?.sizeLimit !== undefined && (tryParseQuantity(emptyDir.sizeLimit)?.nanos ?? 0n) < 0n)
    wrong(report, path.child('emptyDir', 'sizeLimit'), emptyDir.sizeLimit, 'not be negative');
  if (hostPath) {
    const at = path.child('hostPath');
    checkName(report, at.child('path'), hostPath.path, pathWithoutBacksteps);
    checkChoice(report, at.child('type'), hostPath.type, { of: hostPathTypes, absent: 'allowed' });
  }
  if (downwardAPI) {
    checkMode(report, path.child('downwardAPI', 'defaultMode'), downwardAPI.defaultMode);
    checkDownwardItems(report, path.child('downwardAPI', 'items'), downwardAPI.items);
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
  if (volume.name && podName)
    checkText(report, path.child('name'), `${podName}-${volume.name}`, dnsSubdomain);
}

/** A claim made for an ephemeral volume of the pod is not to be used a second way. */
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
        'not be a claim made for an ephemeral volume of the pod',
      );
  });
}
