import { posix } from 'node:path';
import type { LinuxContainerSecurityContext, NamespaceOption, SecurityProfile } from '../../cri/index.ts';
import type { AppArmorProfile, Container, PodSecurityContext, SeccompProfile } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { describePod, ephemeralContainersOf, initContainersOf } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** The default user of an image: root when the image has none. */
export type ImageUser =
  | { readonly kind: 'uid'; readonly uid: bigint }
  | { readonly kind: 'name'; readonly name: string };

/**
 * Converts the user in the runtime's image status: a user ID, a user name that only the image can
 * resolve, or none.
 */
export function imageUser(uid: bigint | undefined, username: string): ImageUser {
  if (uid !== undefined || username === '') return { kind: 'uid', uid: uid ?? 0n };
  return { kind: 'name', name: username };
}

export interface SecurityInputs {
  readonly imageUser: ImageUser;
  readonly namespaces: MessageInit<NamespaceOption>;
  readonly seccomp: SeccompSettings;
  /** The groups that own the pod's volumes. */
  readonly extraGroups: readonly number[];
  /**
   * The /sys/devices/system/cpu/cpuN/thermal_throttle paths of this machine, which are masked in
   * containers.
   */
  readonly thermalThrottlePaths: readonly string[];
}

type Context = MessageInit<LinuxContainerSecurityContext>;

/**
 * Returns the security context for the CRI. Throws CONTAINER_CONFIG with the message for the
 * container's waiting state.
 */
export function containerSecurityContext(pod: Pod, container: Container, inputs: SecurityInputs): Context {
  verifyNonRoot(pod, container, inputs.imageUser);
  const own = container.securityContext;
  const whole = pod.spec.securityContext;
  const group = own?.runAsGroup ?? whole?.runAsGroup;
  const capabilities = own?.capabilities;
  return {
    ...userFields(own?.runAsUser ?? whole?.runAsUser, inputs.imageUser),
    ...pathFields(container, inputs),
    ...appArmorFields(pod, container),
    runAsGroup: group === undefined ? undefined : { value: BigInt(group) },
    selinuxOptions: own?.seLinuxOptions ?? whole?.seLinuxOptions,
    capabilities:
      capabilities === undefined
        ? undefined
        : { addCapabilities: capabilities.add ?? [], dropCapabilities: capabilities.drop ?? [] },
    privileged: own?.privileged ?? false,
    readonlyRootfs: own?.readOnlyRootFilesystem ?? false,
    noNewPrivs: own?.allowPrivilegeEscalation === false,
    namespaceOptions: inputs.namespaces,
    supplementalGroups: supplementalGroups(whole, inputs.extraGroups, 'last'),
    supplementalGroupsPolicy: supplementalGroupsPolicy(whole),
    seccomp: seccompProfile(pod, container, inputs.seccomp),
  };
}

function userFields(
  requested: number | undefined,
  image: ImageUser,
): Pick<Context, 'runAsUser' | 'runAsUsername'> {
  if (requested !== undefined) return { runAsUser: { value: BigInt(requested) } };
  return image.kind === 'uid' ? { runAsUser: { value: image.uid } } : { runAsUsername: image.name };
}

/**
 * Returns the supplemental groups in the order of the Go kubelet: in a container, the groups of the
 * pod's volumes are last; in the sandbox, they are between the fsGroup and the listed groups.
 */
export function supplementalGroups(
  context: PodSecurityContext | undefined,
  extraGroups: readonly number[],
  extra: 'last' | 'second',
): bigint[] {
  const fsGroup = context?.fsGroup === undefined ? [] : [context.fsGroup];
  const listed = context?.supplementalGroups ?? [];
  const groups =
    extra === 'last' ? [...fsGroup, ...listed, ...extraGroups] : [...fsGroup, ...extraGroups, ...listed];
  return groups.map(BigInt);
}

export function supplementalGroupsPolicy(context: PodSecurityContext | undefined): 'Merge' | 'Strict' {
  const policy = context?.supplementalGroupsPolicy ?? 'Merge';
  if (policy === 'Merge' || policy === 'Strict') return policy;
  throw new KubelingError('CONTAINER_CONFIG', `unsupported supplementalGroupsPolicy: ${policy}`);
}

const maskedPaths = [
  ...['asound', 'acpi', 'interrupts', 'kcore', 'keys', 'latency_stats'].map((name) => `/proc/${name}`),
  ...['timer_list', 'timer_stats', 'sched_debug', 'scsi'].map((name) => `/proc/${name}`),
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const readonlyPaths = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);

/** Returns the paths of /proc and /sys that are masked or read-only in the container. */
function pathFields(
  { securityContext }: Container,
  { thermalThrottlePaths }: SecurityInputs,
): Pick<Context, 'maskedPaths' | 'readonlyPaths'> {
  if (securityContext?.procMount === 'Unmasked') return { maskedPaths: [], readonlyPaths: [] };
  return { maskedPaths: [...maskedPaths, ...thermalThrottlePaths], readonlyPaths };
}

const largestUid = 2_147_483_647n;

/**
 * Throws for a container with runAsNonRoot that would run as root or whose user cannot be verified.
 */
function verifyNonRoot(pod: Pod, container: Container, image: ImageUser): void {
  const own = container.securityContext;
  const whole = pod.spec.securityContext;
  if ((own?.runAsNonRoot ?? whole?.runAsNonRoot) !== true) return;
  const problem = breach(own?.runAsUser ?? whole?.runAsUser, image);
  if (problem === undefined) return;
  const { says, advice = '' } = problem;
  const where = `(pod: "${describePod(pod)}", container: ${container.name})`;
  throw new KubelingError('CONTAINER_CONFIG', `${says} ${where}${advice}`);
}

function breach(
  requested: number | undefined,
  image: ImageUser,
): { readonly says: string; readonly advice?: string } | undefined {
  if (requested !== undefined) {
    return requested === 0 ? { says: "container's runAsUser breaks non-root policy" } : undefined;
  }
  if (image.kind === 'name') {
    return {
      says: `container has runAsNonRoot and image has non-numeric user (${image.name}), cannot verify user is non-root`,
      advice: `: set securityContext.runAsUser to the number of user ${image.name}`,
    };
  }
  if (image.uid === 0n) return { says: 'container has runAsNonRoot and image will run as root' };
  if (image.uid > 0n && image.uid <= largestUid) return undefined;
  return {
    says: `container has runAsNonRoot and image has an invalid user id (${image.uid}). (Must be 1-(${largestUid}))`,
  };
}

/** The settings for seccomp and AppArmor profiles. */

export interface SeccompSettings {
  /** The directory of Localhost seccomp profiles. */
  readonly profileRoot: string;
  /** The seccomp profile of containers that specify none. */
  readonly fallback: 'RuntimeDefault' | 'Unconfined';
}

type Profile = MessageInit<SecurityProfile>;

/** Returns the seccomp profile: that of the container, or else that of the pod. */
function seccompProfile(pod: Pod, container: Container, settings: SeccompSettings): Profile {
  const profile = container.securityContext?.seccompProfile ?? pod.spec.securityContext?.seccompProfile;
  if (profile === undefined) return { profileType: settings.fallback };
  if (profile.type === 'Localhost') return localhostSeccomp(profile, settings);
  return { profileType: profile.type === 'RuntimeDefault' ? 'RuntimeDefault' : 'Unconfined' };
}

function localhostSeccomp({ localhostProfile }: SeccompProfile, { profileRoot }: SeccompSettings): Profile {
  if (localhostProfile === undefined || localhostProfile === '') {
    const message = 'localhostProfile must be set if seccompProfile type is Localhost.';
    throw new KubelingError('CONTAINER_CONFIG', message);
  }
  if (posix.isAbsolute(localhostProfile) || localhostProfile.split('/').includes('..')) {
    const message = `localhostProfile "${localhostProfile}" must stay in the node's directory of seccomp profiles`;
    throw new KubelingError('CONTAINER_CONFIG', message);
  }
  return { profileType: 'Localhost', localhostRef: posix.join(profileRoot, localhostProfile) };
}

const annotationPrefix = 'container.apparmor.security.beta.kubernetes.io/';

type AppArmorFields = Pick<MessageInit<LinuxContainerSecurityContext>, 'apparmor' | 'apparmorProfile'>;

/**
 * Returns both CRI fields for the AppArmor profile, the current and the deprecated field; no fields
 * without a profile.
 */
function appArmorFields(pod: Pod, container: Container): AppArmorFields {
  const profile = appArmorProfile(pod, container);
  switch (profile?.type) {
    case 'RuntimeDefault':
      return { apparmor: { profileType: 'RuntimeDefault' }, apparmorProfile: 'runtime/default' };
    case 'Unconfined':
      return { apparmor: { profileType: 'Unconfined' }, apparmorProfile: 'unconfined' };
    case 'Localhost':
      return localhostAppArmor(profile);
    default:
      return {};
  }
}

/**
 * Returns the AppArmor profile of the container; the annotation of a static pod overrides the field
 * of the pod.
 */
function appArmorProfile(pod: Pod, container: Container): AppArmorProfile | undefined {
  const annotation = pod.metadata.annotations?.[`${annotationPrefix}${container.name}`];
  return (
    container.securityContext?.appArmorProfile ??
    annotatedAppArmor(annotation) ??
    pod.spec.securityContext?.appArmorProfile
  );
}

/**
 * Returns why the pod's AppArmor profiles cannot be enforced; undefined when they can, or when the
 * pod has none.
 */
export function appArmorProblem(pod: Pod, host: 'enabled' | 'disabled'): string | undefined {
  const all = [...pod.spec.containers, ...initContainersOf(pod), ...ephemeralContainersOf(pod)];
  const requested = [
    pod.spec.securityContext?.appArmorProfile,
    ...all.map((each) => appArmorProfile(pod, each)),
  ];
  const confining = requested.filter((profile) => profile !== undefined && profile.type !== 'Unconfined');
  if (confining.length === 0) return undefined;
  if (host === 'disabled') return 'Cannot enforce AppArmor: AppArmor is not enabled on the host';
  const isNameless = confining.some(
    (profile) => profile?.type === 'Localhost' && (profile.localhostProfile ?? '').trim() === '',
  );
  return isNameless ? 'Cannot enforce AppArmor: invalid empty AppArmor profile name' : undefined;
}

function annotatedAppArmor(text: string | undefined): AppArmorProfile | undefined {
  if (text === 'runtime/default') return { type: 'RuntimeDefault' };
  if (text === 'unconfined') return { type: 'Unconfined' };
  if (text?.startsWith('localhost/') !== true) return undefined;
  return { type: 'Localhost', localhostProfile: text.slice('localhost/'.length) };
}

function localhostAppArmor({ localhostProfile }: AppArmorProfile): AppArmorFields {
  if (localhostProfile === undefined || localhostProfile === '') {
    throw new KubelingError('CONTAINER_CONFIG', 'missing localhost apparmor profile name');
  }
  return {
    apparmor: { profileType: 'Localhost', localhostRef: localhostProfile },
    apparmorProfile: `localhost/${localhostProfile}`,
  };
}
