import { posix } from 'node:path';
import type { LinuxContainerSecurityContext, SecurityProfile } from '../../cri/index.ts';
import type { AppArmorProfile, Container, SeccompProfile } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** What confines system calls and file access of a container besides its user. */

export interface SeccompSettings {
  /** Where profiles of this machine are kept. */
  readonly profileRoot: string;
  /** For containers that name none. */
  readonly fallback: 'RuntimeDefault' | 'Unconfined';
}

type Profile = MessageInit<SecurityProfile>;

/** The container's own goes before the pod's. */
export function seccompProfile(pod: Pod, container: Container, settings: SeccompSettings): Profile {
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

/** Both as runtimes know it now and as old ones did; neither when nothing is asked for. */
export function appArmorFields(pod: Pod, container: Container): AppArmorFields {
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

/** Static pods may have it as an annotation, which goes before the pod's field. */
export function appArmorProfile(pod: Pod, container: Container): AppArmorProfile | undefined {
  const annotation = pod.metadata.annotations?.[`${annotationPrefix}${container.name}`];
  return (
    container.securityContext?.appArmorProfile ??
    annotatedAppArmor(annotation) ??
    pod.spec.securityContext?.appArmorProfile
  );
}

/** Why the pod cannot be confined as it asks for; undefined when it can, or asks for nothing. */
export function appArmorProblem(pod: Pod, host: 'enabled' | 'disabled'): string | undefined {
  const all = [...pod.spec.containers, ...initContainersOf(pod), ...ephemeralContainersOf(pod)];
  const asked = [pod.spec.securityContext?.appArmorProfile, ...all.map((each) => appArmorProfile(pod, each))];
  const confining = asked.filter((profile) => profile !== undefined && profile.type !== 'Unconfined');
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
