import type {
  DownwardAPIVolumeFile,
  FieldPath,
  KeyToPath,
  LabelSelector,
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
  checkText,
  missing,
  named,
  type Report,
  refuse,
  wrong,
} from './report.ts';

/**
 * Validates volumes that consist of single files: keys of objects, fields of the pod, tokens and
 * certificates.
 */

export function checkMode(report: Report, path: FieldPath, mode: number | undefined): void {
  const [least, most] = fileModeRange;
  if (mode !== undefined && (mode < least || mode > most))
    wrong(report, path, mode, 'must be a number between 0 and 0777 (octal), both inclusive');
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
  /**
   * The field path in the errors of all items, because the API server does not name the path of the
   * single item.
   */
  as: FieldPath,
): void {
  items.forEach((item, index) => {
    const at = path.index(index);
    const { fieldRef, resourceFieldRef } = item;
    const tell = (field: string) => named(report, as.child(field));
    checkName(tell('path'), at.child('path'), item.path, localPath);
    if (fieldRef) checkFieldRef(renamed(report, at, as), at.child('fieldRef'), fieldRef, volumeFields);
    else if (resourceFieldRef)
      checkResourceRef(renamed(report, at, as), at.child('resourceFieldRef'), resourceFieldRef, 'volume');
    else missing(named(report, as), at, 'one of fieldRef and resourceFieldRef is required');
    if (fieldRef && resourceFieldRef)
      wrong(
        named(report, as),
        at,
        'resource',
        'fieldRef and resourceFieldRef can not be specified simultaneously',
      );
    checkMode(tell('mode'), at.child('mode'), item.mode);
  });
}

/** Reports errors of fields below `from` as errors of fields below `to`. */
function renamed(report: Report, from: FieldPath, to: FieldPath): Report {
  return (problem) => report({ ...problem, named: problem.named.rebased(from, to) });
}

export function checkProjected(report: Report, path: FieldPath, projected: ProjectedVolumeSource): void {
  const taken = new Set<string>();
  projected.sources.forEach((source, index) => {
    const at = path.child('sources').index(index);
    const given = Object.entries(source).filter(([, part]) => part !== undefined);
    checkProjection(report, at, source, path);
    for (const { field, file, shown } of filesOf(source, at)) {
      if (file && taken.has(file)) wrong(named(report, path), field, shown, 'conflicting duplicate paths');
      taken.add(file);
    }
    if (given.length > 1) refuse(report, at, 'may not specify more than 1 volume type per source');
  });
  checkMode(report, path.child('defaultMode'), projected.defaultMode);
}

interface ProjectedFile {
  readonly field: FieldPath;
  readonly file: string;
  /** The text that an error shows for this file if another file of the volume has the same path. */
  readonly shown: string;
}

/** Returns the paths of the files that one source of a projected volume contains. */
function filesOf(source: VolumeProjection, path: FieldPath): readonly ProjectedFile[] {
  const lists = (['secret', 'configMap', 'downwardAPI'] as const).flatMap((kind) =>
    (source[kind]?.items ?? []).map((item, index) => ({
      field: path.child(kind, 'items').index(index).child('path'),
      file: item.path,
      shown: kind === 'downwardAPI' ? item.path : (source[kind]?.name ?? ''),
    })),
  );
  const { clusterTrustBundle: bundle, podCertificate: certificate } = source;
  const one = (field: FieldPath, file: string) => ({ field, file, shown: file });
  const ofBundle = bundle ? [one(path.child('clusterTrustBundle', 'path'), bundle.path)] : [];
  const ofCertificate = certificatePaths.flatMap((field) => {
    const file = certificate?.[field];
    return file ? [one(path.child('podCertificate', field), file)] : [];
  });
  return [...lists, ...ofBundle, ...ofCertificate];
}

const certificatePaths = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;

function checkProjection(
  report: Report,
  path: FieldPath,
  source: VolumeProjection,
  projected: FieldPath,
): void {
  for (const kind of ['secret', 'configMap'] as const) {
    const object = source[kind];
    if (object === undefined) continue;
    checkPresent(report, path.child(kind, 'name'), object.name);
    checkKeys(report, path.child(kind, 'items'), object.items);
  }
  const downward = path.child('downwardAPI');
  checkDownwardItems(report, downward.child('items'), source.downwardAPI?.items, downward);
  checkToken(report, path.child('serviceAccountToken'), source.serviceAccountToken, projected);
  checkBundle(report, path.child('clusterTrustBundle'), source.clusterTrustBundle);
  checkCertificate(report, path.child('podCertificate'), source.podCertificate);
}

const tenMinutes = 600;

function checkToken(
  report: Report,
  path: FieldPath,
  token: VolumeProjection['serviceAccountToken'],
  projected: FieldPath,
): void {
  if (token === undefined) return;
  const at = path.child('expirationSeconds');
  const seconds = token.expirationSeconds ?? tenMinutes;
  if (seconds < tenMinutes) wrong(report, at, seconds, 'may not specify a duration less than 10 minutes');
  if (seconds > 2 ** 32) wrong(report, at, seconds, 'may not specify a duration larger than 2^32 seconds');
  checkName(named(report, projected.child('path')), path.child('path'), token.path, localPath);
}

function checkBundle(report: Report, path: FieldPath, bundle: VolumeProjection['clusterTrustBundle']): void {
  if (bundle === undefined) return;
  const { name, signerName } = bundle;
  if (name === undefined && signerName === undefined)
    missing(report, path, 'either name or signerName must be specified');
  else if (name !== undefined && signerName !== undefined)
    wrong(report, path, bundle, 'only one of name and signerName may be used');
  else if (name !== undefined) checkBundleName(report, path, name, bundle.labelSelector);
  else {
    checkSigner(report, path.child('signerName'), signerName);
    checkLabelSelector(report, path.child('labelSelector'), bundle.labelSelector);
  }
  checkName(report, path.child('path'), bundle.path, localPath);
}

function checkBundleName(
  report: Report,
  path: FieldPath,
  name: string,
  selector: LabelSelector | undefined,
): void {
  const at = path.child('name');
  if (name === '') missing(report, at, 'must be a valid object name');
  // The name of a signer's trust bundle starts with the signer, with a colon instead of the slash.
  else
    for (const why of dnsSubdomain(name.split(':').at(-1) ?? ''))
      wrong(report, at, name, `not a valid clustertrustbundlename: ${why}`);
  if (selector !== undefined)
    wrong(report, path.child('labelSelector'), selector, 'labelSelector must be unset if name is specified');
}

/** Validates a signer name such as `example.com/my-signer`. */
function checkSigner(report: Report, path: FieldPath, text: string | undefined): void {
  const [domain = '', name = '', ...more] = (text ?? '').split('/');
  const sound =
    more.length === 0 &&
    domain.includes('.') &&
    dnsSubdomain(domain).length === 0 &&
    name !== '' &&
    dnsSubdomain(name).length === 0;
  if (!text) missing(report, path, 'must be a valid signer name');
  else if (!sound) wrong(report, path, text, 'must be a domain and a name with a / between them');
}

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const anHour = 3600;
const aDay = 86_400;
const ninetyOneDays = 91 * aDay;

function checkCertificate(
  report: Report,
  path: FieldPath,
  certificate: VolumeProjection['podCertificate'],
): void {
  if (certificate === undefined) return;
  checkSigner(report, path.child('signerName'), certificate.signerName);
  checkAnnotations(report, path.child('userAnnotations'), certificate.userAnnotations);
  checkChoice(report, path.child('keyType'), certificate.keyType, { of: keyTypes, absent: 'unsupported' });
  const most = certificate.signerName?.startsWith('kubernetes.io/') ? aDay : ninetyOneDays;
  const seconds = certificate.maxExpirationSeconds;
  const at = path.child('maxExpirationSeconds');
  if (seconds !== undefined && seconds < anHour)
    wrong(report, at, seconds, `if provided, maxExpirationSeconds must be >= ${anHour}`);
  if (seconds !== undefined && seconds > most)
    wrong(report, at, seconds, `if provided, maxExpirationSeconds must be <= ${most}`);
  for (const field of certificatePaths) checkText(report, path.child(field), certificate[field], localPath);
  if (certificatePaths.every((field) => !certificate[field]))
    missing(
      report,
      path,
      `specify at least one of ${certificatePaths.slice(0, 2).join(', ')}, and ${certificatePaths[2]}`,
    );
}
