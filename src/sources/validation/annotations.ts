import {
  decodeJson,
  type FieldPath,
  type KindTable,
  type PodSpec,
  type Toleration,
} from '../../kinds/index.ts';
import type { FeatureGate } from '../rules.ts';
import { descendingPath } from './names.ts';
import { type Report, wrong } from './report.ts';
import { checkTolerations } from './scheduling.ts';

type Texts = Readonly<Record<string, string>>;

export const annotationKeys = {
  deletionCost: 'controller.kubernetes.io/pod-deletion-cost',
  tolerations: 'scheduler.alpha.kubernetes.io/tolerations',
  podSeccomp: 'seccomp.security.alpha.kubernetes.io/pod',
  containerSeccomp: 'container.seccomp.security.alpha.kubernetes.io/',
  containerAppArmor: 'container.apparmor.security.beta.kubernetes.io/',
} as const;

/** Annotations that once were, or still are, more than a note. */
export function checkSpecialAnnotations(
  report: Report,
  path: FieldPath,
  annotations: Texts,
  context: { readonly spec: PodSpec; readonly table: KindTable; readonly enabled: FeatureGate },
): void {
  const cost = annotations[annotationKeys.deletionCost];
  if (cost !== undefined && !isInt32(cost))
    wrong(report, path.key(annotationKeys.deletionCost), cost, 'be a whole number of 32 bits');
  const written = annotations[annotationKeys.tolerations];
  if (written) checkWrittenTolerations(report, path.key(annotationKeys.tolerations), written, context);
  for (const [key, profile] of Object.entries(annotations)) {
    if (key === annotationKeys.podSeccomp || key.startsWith(annotationKeys.containerSeccomp))
      checkSeccomp(report, path.key(key), profile);
    if (key.startsWith(annotationKeys.containerAppArmor))
      checkAppArmor(report, path.key(key), key, profile, context.spec);
  }
  checkAgreement(report, annotations, context.spec, path);
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
    report(path, 'must be a list of tolerations as JSON');
    return;
  }
  const decoded = list.map((item) => decodeJson<Toleration>(table, 'Toleration', item));
  for (const { findings } of decoded)
    for (const finding of findings)
      if (finding.severity === 'error') report(path, `${finding.field} ${finding.message}`);
  checkTolerations(
    (field, message) => report(path, `${field} ${message}`),
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
  const must = profile.startsWith('localhost/')
    ? descendingPath(profile.slice('localhost/'.length))
    : 'be runtime/default, unconfined or localhost/<file>';
  if (must !== undefined) wrong(report, path, profile, must);
}

function checkAppArmor(report: Report, path: FieldPath, key: string, profile: string, spec: PodSpec): void {
  const container = key.slice(annotationKeys.containerAppArmor.length);
  if (!allContainers(spec).some(({ name }) => name === container))
    report(path, 'must end in the name of a container of the pod');
  if (!['', 'runtime/default', 'unconfined'].includes(profile) && !profile.startsWith('localhost/'))
    wrong(report, path, profile, 'be runtime/default, unconfined or localhost/<profile>');
}

function allContainers(spec: PodSpec) {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
}

/** Whoever says it both ways must say the same. */
function checkAgreement(report: Report, annotations: Texts, spec: PodSpec, path: FieldPath): void {
  const disagrees = (key: string, field: string | undefined) => {
    const noted = annotations[key]?.replace('docker/default', 'runtime/default');
    if (noted !== undefined && field !== undefined && noted !== field)
      wrong(
        report,
        path.key(key),
        annotations[key],
        `agree with the field of the security context, which says ${field}`,
      );
  };
  const whole = spec.securityContext;
  disagrees(annotationKeys.podSeccomp, asAnnotation(whole?.seccompProfile));
  for (const { name, securityContext: own } of allContainers(spec)) {
    disagrees(`${annotationKeys.containerSeccomp}${name}`, asAnnotation(own?.seccompProfile));
    if (spec.os?.name === 'windows') continue;
    const profile = own?.appArmorProfile ?? whole?.appArmorProfile;
    disagrees(`${annotationKeys.containerAppArmor}${name}`, asAnnotation(profile));
  }
}

function asAnnotation(
  profile: { readonly type: string; readonly localhostProfile?: string | undefined } | undefined,
): string | undefined {
  if (profile === undefined) return undefined;
  if (profile.type === 'Localhost') return `localhost/${profile.localhostProfile ?? ''}`;
  return { Unconfined: 'unconfined', RuntimeDefault: 'runtime/default' }[profile.type];
}
