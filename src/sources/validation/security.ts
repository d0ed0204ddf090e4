import type {
  AppArmorProfile,
  FieldPath,
  PodSpec,
  SeccompProfile,
  SecurityContext,
} from '../../kinds/index.ts';
import { descendingPath, sysctlName, userIdRange } from './names.ts';
import {
  checkChoice,
  checkName,
  checkRange,
  type Report,
  refuse,
  repeated,
  type TextRule,
  wrong,
} from './report.ts';
import { checkWindowsOptions } from './windows.ts';

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'];

export function checkSecurityContext(
  report: Report,
  path: FieldPath,
  context: SecurityContext | undefined,
  users: 'host' | 'own',
): void {
  if (context === undefined) return;
  checkRange(report, path.child('runAsUser'), context.runAsUser, userIdRange);
  checkRange(report, path.child('runAsGroup'), context.runAsGroup, userIdRange);
  checkChoice(report, path.child('procMount'), context.procMount, {
    of: ['Default', 'Unmasked'],
    absent: 'allowed',
  });
  if (context.procMount === 'Unmasked' && users === 'host')
    report(path.child('procMount'), 'must not be Unmasked unless spec.hostUsers is false');
  checkEscalation(report, path.child('allowPrivilegeEscalation'), context);
  checkProfiles(report, path, context);
}

function checkEscalation(report: Report, path: FieldPath, context: SecurityContext): void {
  if (context.allowPrivilegeEscalation !== false) return;
  if (context.privileged === true) report(path, 'must not be false while privileged is true');
  if (context.capabilities?.add?.includes('CAP_SYS_ADMIN'))
    report(path, 'must not be false while capabilities.add has CAP_SYS_ADMIN');
}

type Profiles = Pick<SecurityContext, 'seccompProfile' | 'appArmorProfile' | 'windowsOptions'>;

function checkProfiles(report: Report, path: FieldPath, context: Profiles): void {
  checkProfile(report, path.child('seccompProfile'), context.seccompProfile, seccompName);
  checkProfile(report, path.child('appArmorProfile'), context.appArmorProfile, appArmorName);
  checkWindowsOptions(report, path.child('windowsOptions'), context.windowsOptions);
}

const seccompName: TextRule = descendingPath;

const longestPath = 4095;

const appArmorName: TextRule = (text) => {
  if (text.trim() !== text) return 'not have space at its ends';
  return text.length > longestPath ? `be at most ${longestPath} characters long` : undefined;
};

/** Profiles of the machine have a name, the others must not. */
function checkProfile(
  report: Report,
  path: FieldPath,
  profile: SeccompProfile | AppArmorProfile | undefined,
  rule: TextRule,
): void {
  if (profile === undefined) return;
  checkChoice(report, path.child('type'), profile.type, { of: profileTypes, absent: 'refused' });
  const name = path.child('localhostProfile');
  if (profile.type === 'Localhost') checkName(report, name, profile.localhostProfile, rule);
  else if (profile.localhostProfile !== undefined) refuse(report, name, 'unless the type is Localhost');
}

export function checkPodSecurity(report: Report, spec: PodSpec, path: FieldPath): void {
  const context = spec.securityContext ?? {};
  const at = path.child('securityContext');
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup'] as const)
    checkRange(report, at.child(field), context[field], userIdRange);
  context.supplementalGroups?.forEach((group, index) => {
    checkRange(report, at.child('supplementalGroups').index(index), group, userIdRange);
  });
  for (const [field, of] of podPolicies)
    checkChoice(report, at.child(field), context[field], { of, absent: 'allowed' });
  if (spec.shareProcessNamespace === true && spec.hostPID === true)
    report(path.child('shareProcessNamespace'), 'must not be true while hostPID is true');
  checkSysctls(report, spec, at.child('sysctls'));
  checkProfiles(report, at, context);
}

const podPolicies = [
  ['fsGroupChangePolicy', ['OnRootMismatch', 'Always']],
  ['supplementalGroupsPolicy', ['Merge', 'Strict']],
  ['seLinuxChangePolicy', ['Recursive', 'MountOption']],
] as const;

function checkSysctls(report: Report, spec: PodSpec, path: FieldPath): void {
  const names = new Set<string>();
  spec.securityContext?.sysctls?.forEach(({ name }, index) => {
    const at = path.index(index).child('name');
    checkName(report, at, name, sysctlName);
    if (name && names.has(name)) repeated(report, at, name);
    names.add(name);
    const owner = namespaceOf(name);
    if (owner === 'net' && spec.hostNetwork === true)
      wrong(report, at, name, 'not be of the network of the node');
    if (owner === 'ipc' && spec.hostIPC === true) wrong(report, at, name, 'not be of the IPC of the node');
  });
}

/** Which namespace of the kernel keeps a parameter of its own for each pod. Slashes and dots may be swapped. */
function namespaceOf(name: string): 'ipc' | 'net' | undefined {
  const separator = /[./]/.exec(name)?.[0];
  const dotted = separator === '/' ? name.replace(/[./]/g, (sign) => (sign === '/' ? '.' : '/')) : name;
  if (dotted.startsWith('net.')) return 'net';
  const isIpc =
    dotted.startsWith('kernel.shm') ||
    dotted.startsWith('kernel.msg') ||
    dotted.startsWith('fs.mqueue.') ||
    dotted === 'kernel.sem';
  return isIpc ? 'ipc' : undefined;
}

/** A user namespace of the pod's own does not go with other namespaces of the node. */
export function checkUserNamespace(
  report: Report,
  spec: PodSpec,
  path: FieldPath,
  hostNetwork: 'allowed' | 'refused',
): void {
  if (spec.hostUsers !== false) return;
  const why = 'while hostUsers is false';
  if (spec.hostNetwork === true && hostNetwork === 'refused') refuse(report, path.child('hostNetwork'), why);
  if (spec.hostPID === true) refuse(report, path.child('hostPID'), why);
  if (spec.hostIPC === true) refuse(report, path.child('hostIPC'), why);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      if ((container.volumeDevices ?? []).length > 0)
        refuse(report, path.child(list).index(index).child('volumeDevices'), why);
    });
}
