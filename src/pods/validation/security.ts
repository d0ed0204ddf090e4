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
  checkForm,
  checkName,
  checkRange,
  missing,
  named,
  type Report,
  refuse,
  repeated,
  tooLong,
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
    wrong(report, path.child('procMount'), 'Unmasked', '`hostUsers` must be false to use `Unmasked`');
  checkEscalation(report, path, context);
  checkProfiles(report, path, context);
}

function checkEscalation(report: Report, path: FieldPath, context: SecurityContext): void {
  if (context.allowPrivilegeEscalation !== false) return;
  const at = path.child('allowPrivilegeEscalation');
  const cannot = (what: string) =>
    wrong(named(report, path), at, context, `cannot set \`allowPrivilegeEscalation\` to false and ${what}`);
  if (context.privileged === true) cannot('`privileged` to true');
  if (context.capabilities?.add?.includes('CAP_SYS_ADMIN')) cannot('`capabilities.Add` CAP_SYS_ADMIN');
}

type Profiles = Pick<SecurityContext, 'seccompProfile' | 'appArmorProfile' | 'windowsOptions'>;

function checkProfiles(report: Report, path: FieldPath, context: Profiles): void {
  checkSeccomp(report, path.child('seccompProfile'), context.seccompProfile);
  checkWindowsOptions(report, path.child('windowsOptions'), context.windowsOptions);
  checkAppArmor(report, path.child('appArmorProfile'), context.appArmorProfile);
}

/**
 * A seccomp profile of type Localhost requires `localhostProfile`; other types must not set it. An
 * empty name is rejected, too, although the API server accepts it, because the container could not
 * run with it.
 */
function checkSeccomp(report: Report, path: FieldPath, profile: SeccompProfile | undefined): void {
  if (profile === undefined) return;
  checkProfileType(report, path, profile.type, 'type is required when seccompProfile is set');
  const at = path.child('localhostProfile');
  const name = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (name === undefined || name === '') missing(report, at, 'must be set when seccomp type is Localhost');
    else checkForm(report, at, name, descendingPath);
  } else if (name !== undefined) wrong(report, at, profile, 'can only be set when seccomp type is Localhost');
}

const longestPath = 4095;

function checkAppArmor(report: Report, path: FieldPath, profile: AppArmorProfile | undefined): void {
  if (profile === undefined) return;
  const at = path.child('localhostProfile');
  const name = profile.localhostProfile;
  if (profile.type !== 'Localhost') {
    if (name !== undefined) wrong(report, at, name, 'can only be set when AppArmor type is Localhost');
    checkProfileType(report, path, profile.type, 'type is required when appArmorProfile is set');
    return;
  }
  if (name === undefined || name.trim() === '')
    missing(report, at, 'must be set when AppArmor type is Localhost');
  else if (name.trim() !== name) wrong(report, at, name, 'must not be padded with whitespace');
  if ((name ?? '').length > longestPath) tooLong(report, at, longestPath);
}

function checkProfileType(report: Report, path: FieldPath, type: string, why: string): void {
  if (!type) missing(report, path.child('type'), why);
  else checkChoice(report, path.child('type'), type, { of: profileTypes, absent: 'refused' });
}

export function checkPodSecurity(report: Report, spec: PodSpec, path: FieldPath): void {
  const context = spec.securityContext ?? {};
  const at = path.child('securityContext');
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup'] as const)
    checkRange(report, at.child(field), context[field], userIdRange);
  context.supplementalGroups?.forEach((group, index) => {
    checkRange(report, at.child('supplementalGroups').index(index), group, userIdRange);
  });
  if (spec.shareProcessNamespace === true && spec.hostPID === true)
    wrong(
      named(report, at.child('shareProcessNamespace')),
      path.child('shareProcessNamespace'),
      true,
      'ShareProcessNamespace and HostPID cannot both be enabled',
    );
  checkSysctls(report, spec, at.child('sysctls'));
  const policy = (field: 'fsGroupChangePolicy' | 'supplementalGroupsPolicy' | 'seLinuxChangePolicy') =>
    checkChoice(report, at.child(field), context[field], { of: podPolicies[field], absent: 'allowed' });
  policy('fsGroupChangePolicy');
  checkProfiles(report, at, context);
  policy('supplementalGroupsPolicy');
  policy('seLinuxChangePolicy');
}

const podPolicies = {
  fsGroupChangePolicy: ['Always', 'OnRootMismatch'],
  supplementalGroupsPolicy: ['Merge', 'Strict'],
  seLinuxChangePolicy: ['MountOption', 'Recursive'],
} as const;

function checkSysctls(report: Report, spec: PodSpec, path: FieldPath): void {
  const names = new Set<string>();
  spec.securityContext?.sysctls?.forEach(({ name }, index) => {
    const at = path.index(index).child('name');
    checkName(report, at, name, sysctlName);
    if (name && sysctlName(name).length === 0 && names.has(name)) repeated(report, at, name);
    names.add(name);
    const owner = namespaceOf(name);
    if (owner === 'net' && spec.hostNetwork === true)
      wrong(report, at, name, "may not be specified when 'hostNetwork' is true");
    if (owner === 'ipc' && spec.hostIPC === true)
      wrong(report, at, name, "may not be specified when 'hostIPC' is true");
  });
}

/**
 * Sysctls by the kernel namespace that isolates them for each pod. Slashes and dots are
 * interchangeable.
 */
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

/** A pod with its own user namespace cannot use the network, PID or IPC namespace of the node. */
export function checkUserNamespace(
  report: Report,
  spec: PodSpec,
  path: FieldPath,
  hostNetwork: 'allowed' | 'refused',
): void {
  if (spec.hostUsers !== false) return;
  const why = 'when `hostUsers` is false';
  if (spec.hostNetwork === true && hostNetwork === 'refused') refuse(report, path.child('hostNetwork'), why);
  if (spec.hostPID === true) refuse(named(report, path.child('HostPID')), path.child('hostPID'), why);
  if (spec.hostIPC === true) refuse(named(report, path.child('HostIPC')), path.child('hostIPC'), why);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      if ((container.volumeDevices ?? []).length > 0)
        refuse(report, path.child(list).index(index).child('volumeDevices'), why);
    });
}
