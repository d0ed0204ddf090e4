import type { LinuxContainerSecurityContext, NamespaceOption } from '../../cri/index.ts';
import type { Container, PodSecurityContext } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { verifyNonRoot } from './non-root.ts';
import { appArmorFields, type SeccompSettings, seccompProfile } from './security-profiles.ts';

/** Who an image wants to run as. An image that says nothing runs as root. */
export type ImageUser =
  | { readonly kind: 'uid'; readonly uid: bigint }
  | { readonly kind: 'name'; readonly name: string };

/** From what the runtime says of the image: a number, a name that only the image itself can make sense of, or nothing. */
export function imageUser(uid: bigint | undefined, username: string): ImageUser {
  if (uid !== undefined || username === '') return { kind: 'uid', uid: uid ?? 0n };
  return { kind: 'name', name: username };
}

export interface SecurityInputs {
  readonly imageUser: ImageUser;
  readonly namespaces: MessageInit<NamespaceOption>;
  readonly seccomp: SeccompSettings;
  /** Of the pod's volumes. */
  readonly extraGroups: readonly number[];
  /** Those of /sys/devices/system/cpu/cpuN/thermal_throttle that exist. */
  readonly thermalThrottlePaths: readonly string[];
}

type Context = MessageInit<LinuxContainerSecurityContext>;

/** Throws CONTAINER_CONFIG with the message for the container's waiting state. */
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
  asked: number | undefined,
  image: ImageUser,
): Pick<Context, 'runAsUser' | 'runAsUsername'> {
  if (asked !== undefined) return { runAsUser: { value: BigInt(asked) } };
  return image.kind === 'uid' ? { runAsUser: { value: image.uid } } : { runAsUsername: image.name };
}

/** The order is the one containers have always seen: the pod's volumes' groups come first in the sandbox only. */
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

/** What a container must not see of the machine's /proc and /sys, and what it must not change there. */
function pathFields(
  { securityContext }: Container,
  { thermalThrottlePaths }: SecurityInputs,
): Pick<Context, 'maskedPaths' | 'readonlyPaths'> {
  if (securityContext?.procMount === 'Unmasked') return { maskedPaths: [], readonlyPaths: [] };
  return { maskedPaths: [...maskedPaths, ...thermalThrottlePaths], readonlyPaths };
}
