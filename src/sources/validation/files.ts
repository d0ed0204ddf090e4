import type {
  DownwardAPIVolumeFile,
  FieldPath,
  KeyToPath,
  ProjectedVolumeSource,
  VolumeProjection,
} from '../../kinds/index.ts';
import { checkFieldRef, checkResourceRef, volumeFields } from './env.ts';
import { checkAnnotations, checkLabelSelector } from './metadata.ts';
import { dnsSubdomain, fileModeRange, localPath } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkRange,
  checkText,
  missing,
  type Report,
  refuse,
  repeated,
  type TextRule,
} from './report.ts';

/** Volumes that are made of single files: keys of objects, fields of the pod, tokens and certificates. */

export function checkMode(report: Report, path: FieldPath, mode: number | undefined): void {
  checkRange(report, path, mode, fileModeRange);
}

export function checkKeys(report: Report, path: FieldPath, items: readonly KeyToPath[] = []): void {
  items.forEach((item, index) => {
    const at = path.index(index);
    checkPresent(report, at.child('key'), item.key);
    checkName(report, at.child('path'), item.path, localPath);
    checkMode(report, at.child('mode'), item.mode);
  });
}

export function checkDownwardItems(
  report: Report,
  path: FieldPath,
  items: readonly DownwardAPIVolumeFile[] = [],
): void {
  items.forEach((item, index) => {
    const at = path.index(index);
    const { fieldRef, resourceFieldRef } = item;
    checkName(report, at.child('path'), item.path, localPath);
    checkMode(report, at.child('mode'), item.mode);
    if (fieldRef) checkFieldRef(report, at.child('fieldRef'), fieldRef, volumeFields);
    else if (resourceFieldRef)
      checkResourceRef(report, at.child('resourceFieldRef'), resourceFieldRef, 'volume');
    else report(at, 'must have one of fieldRef and resourceFieldRef');
    if (fieldRef && resourceFieldRef) report(at, 'must have only one of fieldRef and resourceFieldRef');
  });
}

export function checkProjected(report: Report, path: FieldPath, projected: ProjectedVolumeSource): void {
  checkMode(report, path.child('defaultMode'), projected.defaultMode);
  const taken = new Set<string>();
  projected.sources.forEach((source, index) => {
    const at = path.child('sources').index(index);
    const given = Object.entries(source).filter(([, part]) => part !== undefined);
    if (given.length !== 1) report(at, 'must have exactly one source');
    checkProjection(report, at, source);
    for (const [field, file] of filesOf(source, at)) {
      if (file && taken.has(file)) repeated(report, field, file);
      taken.add(file);
    }
  });
}

/** Every path a projection puts a file at. */
function filesOf(source: VolumeProjection, path: FieldPath): readonly (readonly [FieldPath, string])[] {
  const lists = (['secret', 'configMap', 'downwardAPI'] as const).flatMap((kind) =>
    (source[kind]?.items ?? []).map(
      (item, index) => [path.child(kind, 'items').index(index).child('path'), item.path] as const,
    ),
  );
  const { clusterTrustBundle: bundle, podCertificate: certificate } = source;
  const ofBundle = bundle ? [[path.child('clusterTrustBundle', 'path'), bundle.path] as const] : [];
  const ofCertificate = certificatePaths.flatMap((field) => {
    const file = certificate?.[field];
    return file ? [[path.child('podCertificate', field), file] as const] : [];
  });
  return [...lists, ...ofBundle, ...ofCertificate];
}

const certificatePaths = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;

function checkProjection(report: Report, path: FieldPath, source: VolumeProjection): void {
  for (const kind of ['secret', 'configMap'] as const) {
    const object = source[kind];
    if (object === undefined) continue;
    checkPresent(report, path.child(kind, 'name'), object.name);
    checkKeys(report, path.child(kind, 'items'), object.items);
  }
  checkDownwardItems(report, path.child('downwardAPI', 'items'), source.downwardAPI?.items);
  checkToken(report, path.child('serviceAccountToken'), source.serviceAccountToken);
  checkBundle(report, path.child('clusterTrustBundle'), source.clusterTrustBundle);
  checkCertificate(report, path.child('podCertificate'), source.podCertificate);
}

const tenMinutes = 600;

function checkToken(report: Report, path: FieldPath, token: VolumeProjection['serviceAccountToken']): void {
  if (token === undefined) return;
  checkRange(report, path.child('expirationSeconds'), token.expirationSeconds, [tenMinutes, 2 ** 32]);
  checkName(report, path.child('path'), token.path, localPath);
}

function checkBundle(report: Report, path: FieldPath, bundle: VolumeProjection['clusterTrustBundle']): void {
  if (bundle === undefined) return;
  const { name, signerName } = bundle;
  if (name === undefined && signerName === undefined) report(path, 'must have one of name and signerName');
  if (name !== undefined && signerName !== undefined)
    report(path, 'must have only one of name and signerName');
  if (name !== undefined) {
    // The name of a signer's bundle has the signer before it, its slash as a colon.
    checkName(report, path.child('name'), name, (text) => dnsSubdomain(text.split(':').at(-1) ?? ''));
    if (bundle.labelSelector !== undefined) refuse(report, path.child('labelSelector'), 'beside name');
  } else if (signerName !== undefined) {
    checkName(report, path.child('signerName'), signerName, signer);
    checkLabelSelector(report, path.child('labelSelector'), bundle.labelSelector);
  }
  checkName(report, path.child('path'), bundle.path, localPath);
}

/** `example.com/my-signer`. */
const signer: TextRule = (text) => {
  const [domain = '', name = '', ...more] = text.split('/');
  const sound =
    more.length === 0 &&
    domain.includes('.') &&
    dnsSubdomain(domain) === undefined &&
    name !== '' &&
    dnsSubdomain(name) === undefined;
  return sound ? undefined : 'be a domain and a name with a / between them';
};

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const aDay = 86_400;
const ninetyOneDays = 91 * aDay;

function checkCertificate(
  report: Report,
  path: FieldPath,
  certificate: VolumeProjection['podCertificate'],
): void {
  if (certificate === undefined) return;
  checkName(report, path.child('signerName'), certificate.signerName, signer);
  checkAnnotations(report, path.child('userAnnotations'), certificate.userAnnotations);
  checkChoice(report, path.child('keyType'), certificate.keyType, { of: keyTypes, absent: 'refused' });
  const most = certificate.signerName?.startsWith('kubernetes.io/') ? aDay : ninetyOneDays;
  checkRange(report, path.child('maxExpirationSeconds'), certificate.maxExpirationSeconds, [3600, most]);
  for (const field of certificatePaths) checkText(report, path.child(field), certificate[field], localPath);
  if (certificatePaths.every((field) => !certificate[field]))
    missing(report, path, `to ${certificatePaths.join(' or ')}`);
}
