import {
  type Container,
  decodeJson,
  type FieldPath,
  type KindTable,
  type PodSpec,
  type Toleration,
} from '../../kinds/index.ts';
import type { FeatureGate } from '../rules.ts';
import { descendingPath } from './names.ts';
import { checkForm, named, type Report, refuse, wrong } from './report.ts';
import { checkTolerations } from './scheduling.ts';

type Texts = Readonly<Record<string, string>>;

const annotationKeys = {
  mirror: 'kubernetes.io/config.mirror',
  deletionCost: 'controller.kubernetes.io/pod-deletion-cost',
  tolerations: 'scheduler.alpha.kubernetes.io/tolerations',
  podSeccomp: 'seccomp.security.alpha.kubernetes.io/pod',
  containerSeccomp: 'container.seccomp.security.alpha.kubernetes.io/',
  containerAppArmor: 'container.apparmor.security.beta.kubernetes.io/',
} as const;

/** Validates the values of annotations that the kubelet uses, or used in earlier releases. */
export function checkSpecialAnnotations(
  report: Report,
  path: FieldPath,
  annotations: Texts,
  context: { readonly spec: PodSpec; readonly table: KindTable; readonly enabled: FeatureGate },
): void {
  const mirrored = annotations[annotationKeys.mirror];
  if (mirrored !== undefined && !context.spec.nodeName)
    wrong(
      report,
      path.key(annotationKeys.mirror),
      mirrored,
      'must set spec.nodeName if mirror pod annotation is set',
    );
  const cost = annotations[annotationKeys.deletionCost];
  if (cost !== undefined && !isInt32(cost))
    wrong(report, path.key(annotationKeys.deletionCost), cost, 'must be a 32bit integer');
  const written = annotations[annotationKeys.tolerations];
  if (written) checkWrittenTolerations(report, path.key(annotationKeys.tolerations), written, context);
  for (const [key, profile] of Object.entries(annotations)) {
    if (key === annotationKeys.podSeccomp || key.startsWith(annotationKeys.containerSeccomp))
      checkSeccomp(named(report, path.child(key)), path.key(key), profile);
    if (key.startsWith(annotationKeys.containerAppArmor))
      checkAppArmor(report, path.key(key), key, profile, context.spec);
  }
}

function isInt32(text: string): boolean {
  return /^[-+]?\d{1,10}$/.test(text) && (Number(text) | 0) === Number(text) && !/^[-+]?0\d/.test(text);
}

function checkWrittenTolerations(
  report: Report,
  path: FieldPath,
  text: string,
  { table, enabled }: { readonly table: KindTable; readonly enabled: FeatureGate },
): void {
  const list = parseList(text);
  if (list === undefined) {
    wrong(report, path, annotationKeys.tolerations, 'must be a list of tolerations as JSON');
    return;
  }
  const decoded = list.map((item) => decodeJson<Toleration>(table, 'Toleration', item));
  for (const { findings } of decoded)
    for (const finding of findings)
      if (finding.severity === 'error')
        wrong(report, path, annotationKeys.tolerations, `${finding.field} ${finding.message}`);
  checkTolerations(
    report,
    path,
    decoded.map(({ value }) => value),
    enabled,
  );
}

function parseList(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function checkSeccomp(report: Report, path: FieldPath, profile: string): void {
  if (['runtime/default', 'docker/default', 'unconfined'].includes(profile)) return;
  const file = profile.startsWith('localhost/') ? profile.slice('localhost/'.length) : undefined;
  if (file === undefined) wrong(report, path, profile, 'must be a valid seccomp profile');
  else checkForm(report, path, file, descendingPath);
}

function checkAppArmor(report: Report, path: FieldPath, key: string, profile: string, spec: PodSpec): void {
  const container = key.slice(annotationKeys.containerAppArmor.length);
  if (!allContainers(spec).some(({ name }) => name === container))
    wrong(report, path, container, 'container not found');
  if (!['', 'runtime/default', 'unconfined'].includes(profile) && !profile.startsWith('localhost/'))
    wrong(report, path, profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`);
}

function allContainers(spec: PodSpec) {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
}

/** An annotation and the field that replaces it must have the same value. */
export function checkAgreement(report: Report, annotations: Texts, spec: PodSpec, path: FieldPath): void {
  const { securityContext: whole } = spec;
  const seccomp = path.child('securityContext', 'seccompProfile');
  compare(report, seccomp, annotations[annotationKeys.podSeccomp], whole?.seccompProfile);
  eachContainer(spec, path, ({ name, securityContext: own }, at) => {
    const noted = annotations[`${annotationKeys.containerSeccomp}${name}`];
    compare(report, at.child('securityContext', 'seccompProfile'), noted, own?.seccompProfile);
  });
  if (spec.os?.name === 'windows') return;
  eachContainer(spec, path, ({ name, securityContext: own }, at) => {
    const noted = annotations[`${annotationKeys.containerAppArmor}${name}`];
    const profile = own?.appArmorProfile ?? whole?.appArmorProfile;
    compare(report, at.child('securityContext', 'appArmorProfile'), noted, profile, 'apparmor');
  });
}

function eachContainer(
  spec: PodSpec,
  path: FieldPath,
  visit: (container: Container, at: FieldPath) => void,
): void {
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      visit(container, path.child(list).index(index));
    });
}

interface Profile {
  readonly type: string;
  readonly localhostProfile?: string | undefined;
}

function compare(
  report: Report,
  path: FieldPath,
  noted: string | undefined,
  profile: Profile | undefined,
  what: 'seccomp' | 'apparmor' = 'seccomp',
): void {
  if (noted === undefined || profile === undefined) return;
  const [kind = '', file] = splitOnce(noted.replace('docker/default', 'runtime/default'));
  const type = { unconfined: 'Unconfined', localhost: 'Localhost', runtime: 'RuntimeDefault' }[kind];
  if (type !== profile.type)
    refuse(report, path.child('type'), `${what} type in annotation and field must match`);
  else if (type === 'Localhost' && file !== profile.localhostProfile)
    refuse(report, path.child('localhostProfile'), `${what} profile in annotation and field must match`);
}

function splitOnce(text: string): readonly (string | undefined)[] {
  const at = text.indexOf('/');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
