import type { FieldPath, PodSpec, WindowsSecurityContextOptions } from '../../kinds/index.ts';
import { dnsSubdomain } from './names.ts';
import {
  checkForm,
  missing,
  named,
  type Report,
  refuse,
  type TextRule,
  unsupported,
  wrong,
} from './report.ts';

/**
 * Validates Windows options. Windows pods never run here, but a manifest must be valid or invalid
 * on every node alike.
 */

const mostCredentialKiB = 64;

const credential: TextRule = (text) => {
  if (text === '') return ['gmsaCredentialSpec cannot be an empty string'];
  if (Buffer.byteLength(text) <= mostCredentialKiB * 1024) return [];
  return [`gmsaCredentialSpec size must be under ${mostCredentialKiB} KiB`];
};

export function checkWindowsOptions(
  report: Report,
  path: FieldPath,
  options: WindowsSecurityContextOptions | undefined,
): void {
  if (options === undefined) return;
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: credentials, runAsUserName: user } = options;
  if (name !== undefined) checkForm(report, path.child('gmsaCredentialSpecName'), name, dnsSubdomain);
  if (credentials !== undefined) checkForm(report, path.child('gmsaCredentialSpec'), credentials, credential);
  if (user !== undefined) checkForm(report, path.child('runAsUserName'), user, userName);
}

const netBiosDomain = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const dnsDomain =
  /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** A Windows user name: `user` or `domain\user`. */
const userName: TextRule = (text) => {
  const parts = text.split('\\');
  if (text === '') return ['runAsUserName cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text)) return ['runAsUserName cannot contain control characters'];
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash'];
  return [...(parts.length > 1 ? domainProblems(parts[0] ?? '') : []), ...userProblems(parts.at(-1) ?? '')];
};

const longestDomain = 256;
const longestUser = 104;

function domainProblems(domain: string): readonly string[] {
  const isNamed = netBiosDomain.test(domain) || dnsDomain.test(domain);
  return [
    ...(domain.length >= longestDomain
      ? [`runAsUserName's Domain length must be under ${longestDomain} characters`]
      : []),
    ...(isNamed ? [] : ["runAsUserName's Domain doesn't match the NetBios nor the DNS format"]),
  ];
}

function userProblems(user: string): readonly string[] {
  const long = `runAsUserName's User length must not be longer than ${longestUser} characters`;
  return [
    ...(user === '' ? ["runAsUserName's User cannot be empty"] : []),
    ...(user.length > longestUser ? [long] : []),
    ...(/^[. ]+$/.test(user) ? ["runAsUserName's User cannot contain only periods or spaces"] : []),
    ...(/["/\\:;|=,+*?<>@[\]]/.test(user)
      ? ['runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]']
      : []),
  ];
}

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/**
 * Either all containers of a pod are Windows host process containers, or none is; host process
 * containers require the host network.
 */
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
          `pod hostProcess value must be identical if both are specified, was ${whole}`,
        );
    });
  const hosted = all.filter((one) => (one.securityContext?.windowsOptions?.hostProcess ?? whole) === true);
  if (hosted.length === 0) return;
  if (hosted.length !== all.length)
    wrong(
      report,
      path,
      '',
      'If pod contains any hostProcess containers then all containers must be HostProcess containers',
    );
  if (spec.hostNetwork !== true)
    wrong(
      report,
      path.child('hostNetwork'),
      false,
      'hostNetwork must be true if pod contains any hostProcess containers',
    );
}

/** Rejects fields without a meaning on the pod's operating system. */
export function checkSystem(report: Report, spec: PodSpec, path: FieldPath): void {
  if (spec.os === undefined) return;
  const at = path.child('os', 'name');
  const { name } = spec.os;
  if (!name) missing(report, at);
  else if (name === 'linux') checkFields(report, spec, path, linux);
  else if (name === 'windows') checkFields(report, spec, path, windows);
  else unsupported(named(report, path.child('os')), at, name, ['linux', 'windows']);
}

interface System {
  readonly why: string;
  readonly fields: readonly string[];
  readonly containerFields: readonly string[];
}

const linux: System = {
  why: 'windows options cannot be set for a linux pod',
  fields: ['securityContext.windowsOptions'],
  containerFields: ['windowsOptions'],
};

const windows: System = {
  why: 'cannot be set for a windows pod',
  fields: [
    'securityContext.appArmorProfile',
    'securityContext.seLinuxOptions',
    'hostUsers',
    'hostPID',
    'hostIPC',
    'securityContext.seccompProfile',
    'securityContext.fsGroup',
    'securityContext.fsGroupChangePolicy',
    'securityContext.sysctls',
    'shareProcessNamespace',
    'securityContext.runAsUser',
    'securityContext.runAsGroup',
    'securityContext.supplementalGroups',
    'securityContext.supplementalGroupsPolicy',
    'securityContext.seLinuxChangePolicy',
  ],
  containerFields: [
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
  ],
};

function checkFields(report: Report, spec: PodSpec, path: FieldPath, system: System): void {
  const { why, fields, containerFields } = system;
  for (const field of fields) {
    const names = field.split('.');
    if (isSet(names.reduce<unknown>(memberOf, spec), field)) refuse(report, path.child(...names), why);
  }
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      const at = path.child(list).index(index).child('securityContext');
      for (const field of containerFields)
        if (memberOf(container.securityContext, field) !== undefined) refuse(report, at.child(field), why);
    });
}

/** Whether a field is set; a boolean field counts as set only if it is true. */
function isSet(value: unknown, field: string): boolean {
  return field === 'hostPID' || field === 'hostIPC' ? value === true : value !== undefined;
}

function memberOf(object: unknown, name: string): unknown {
  return (object as Readonly<Record<string, unknown>> | undefined)?.[name];
}
