import type {
  FieldPath,
  PodSpec,
  SecurityContext,
  WindowsSecurityContextOptions,
} from '../../kinds/index.ts';
import { dnsSubdomain } from './names.ts';
import { checkText, type Report, refuse, type TextRule, wrong } from './report.ts';

/** Pods for Windows never run here, but a manifest is judged the same wherever it is read. */

const mostCredentialBytes = 64 * 1024;

export function checkWindowsOptions(
  report: Report,
  path: FieldPath,
  options: WindowsSecurityContextOptions | undefined,
): void {
  if (options === undefined) return;
  checkText(report, path.child('gmsaCredentialSpecName'), options.gmsaCredentialSpecName, dnsSubdomain);
  const { gmsaCredentialSpec: credentials, runAsUserName: user } = options;
  if (credentials !== undefined && (credentials === '' || credentials.length > mostCredentialBytes))
    report(path.child('gmsaCredentialSpec'), `must be between 1 and ${mostCredentialBytes} bytes long`);
  const must = user === undefined ? undefined : userName(user);
  if (must !== undefined) wrong(report, path.child('runAsUserName'), user, must);
}

const netBiosDomain = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const dnsDomain =
  /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** `user` or `domain\user`. */
const userName: TextRule = (text) => {
  const parts = text.split('\\');
  const user = parts.at(-1) ?? '';
  const domain = parts.length > 1 ? (parts[0] ?? '') : undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return 'not contain control characters';
  if (parts.length > 2) return 'have at most one backslash';
  if (
    domain !== undefined &&
    (domain.length >= 256 || !(netBiosDomain.test(domain) || dnsDomain.test(domain)))
  )
    return 'have a NetBIOS or DNS name before the backslash';
  if (user === '' || user.length > 104 || /^[. ]+$/.test(user) || /["/\\:;|=,+*?<>@[\]]/.test(user))
    return 'have a user name of 1 to 104 characters without "/\\:;|=,+*?<>@[]';
  return undefined;
};

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/** Either all containers of a pod are processes of the host or none is, and then on its network. */
export function checkHostProcess(report: Report, spec: PodSpec, path: FieldPath): void {
  const whole = spec.securityContext?.windowsOptions?.hostProcess;
  const all = containerLists.flatMap((list) => [...(spec[list] ?? [])]);
  for (const list of containerLists)
    spec[list]?.forEach(({ securityContext }, index) => {
      const own = securityContext?.windowsOptions?.hostProcess;
      if (whole !== undefined && own !== undefined && own !== whole)
        wrong(
          report,
          path.child(list).index(index).child('securityContext', 'windowsOptions', 'hostProcess'),
          own,
          `be ${whole} like that of the pod`,
        );
    });
  const hosted = all.filter((one) => (one.securityContext?.windowsOptions?.hostProcess ?? whole) === true);
  if (hosted.length === 0) return;
  if (hosted.length !== all.length)
    report(path, 'must have only containers that are host processes, or none');
  if (spec.hostNetwork !== true) report(path.child('hostNetwork'), 'must be true with host processes');
}

/** Fields that mean nothing on the system a pod says it is for. */
export function checkSystem(report: Report, spec: PodSpec, path: FieldPath): void {
  const os = spec.os?.name;
  if (os === undefined) return;
  if (os !== 'linux' && os !== 'windows') {
    wrong(report, path.child('os', 'name'), os, 'be one of linux, windows');
    return;
  }
  const why = `for a ${os === 'linux' ? 'Linux' : 'Windows'} pod`;
  if (os === 'windows')
    for (const field of ['hostUsers', 'shareProcessNamespace'] as const)
      if (spec[field] !== undefined) refuse(report, path.child(field), why);
  if (os === 'windows')
    for (const field of ['hostPID', 'hostIPC'] as const)
      if (spec[field] === true) refuse(report, path.child(field), why);
  const podFields = os === 'linux' ? ['windowsOptions'] : linuxPodFields;
  refuseFields(report, path.child('securityContext'), spec.securityContext, podFields, why);
  const fields = os === 'linux' ? ['windowsOptions'] : linuxContainerFields;
  for (const list of containerLists)
    spec[list]?.forEach((container, index) => {
      refuseFields(
        report,
        path.child(list).index(index).child('securityContext'),
        container.securityContext,
        fields,
        why,
      );
    });
}

const linuxPodFields = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
];
const linuxContainerFields = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
];

function refuseFields(
  report: Report,
  path: FieldPath,
  context: SecurityContext | PodSpec['securityContext'],
  fields: readonly string[],
  why: string,
): void {
  for (const [field, value] of Object.entries(context ?? {}))
    if (value !== undefined && fields.includes(field)) refuse(report, path.child(field), why);
}
