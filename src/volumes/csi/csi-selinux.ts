import type { CSIDriver, SELinuxOptions } from '../../kinds/index.ts';
import { claimNameOf, type Pod } from '../../pods/index.ts';
import { wrong } from '../manager/mount-options.ts';
import { containersOf } from '../manager/volume-paths.ts';
import { unusable } from '../projected/payload.ts';
import type { CsiVolume } from './csi-request.ts';

/**
 * Allowed characters of a label part: drivers pass the label in double quotes as an option of
 * mount(8), so it must not contain quotes.
 */
const labelPart = /^[\w.:,-]*$/;

/** SELinux configuration of the machine. */
export interface SelinuxFacts {
  /** SELinux file context of containers, without the level. */
  readonly fileContext: string;
  /** Which volumes are mounted with a label: only ReadWriteOncePod volumes, or all. */
  readonly labelled?: 'one-pod' | 'all' | undefined;
}

/**
 * Returns the SELinux context with which to mount the volume, so that its files need no relabeling;
 * undefined when the runtime relabels the files. Throws when the containers need different
 * contexts.
 */
export function mountContext(
  facts: SelinuxFacts | undefined,
  pod: Pod,
  volume: CsiVolume,
  driver: CSIDriver | undefined,
): string | undefined {
  if (facts === undefined || driver?.spec.seLinuxMount !== true || volume.claim === undefined)
    return undefined;
  if (volume.use !== 'one-pod' && facts.labelled !== 'all') return undefined;
  if (pod.spec.securityContext?.seLinuxChangePolicy === 'Recursive') return undefined;
  const contexts = new Set(
    optionsFor(pod, volume).flatMap((options) => contextOf(options, facts.fileContext) ?? []),
  );
  if (contexts.size > 1) throw unusable(`multiple SELinux labels found: ${[...contexts].join(', ')}`);
  return [...contexts][0];
}

/** Formats the mount option as drivers pass it to mount(8). */
function contextOption(context: string): string {
  return `context=${JSON.stringify(context)}`;
}

export function withContext(volume: CsiVolume, context: string | undefined): CsiVolume {
  if (context === undefined) return volume;
  return { ...volume, mountOptions: [...volume.mountOptions, contextOption(context)] };
}

function optionsFor(pod: Pod, { claim }: CsiVolume): readonly SELinuxOptions[] {
  const volumes = (pod.spec.volumes ?? []).filter((podVolume) => claimNameOf(pod, podVolume) === claim);
  const names = new Set(volumes.map(({ name }) => name));
  return containersOf(pod)
    .filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => names.has(name)))
    .flatMap(
      ({ securityContext }) =>
        securityContext?.seLinuxOptions ?? pod.spec.securityContext?.seLinuxOptions ?? [],
    );
}

/**
 * Returns the file context of a label; undefined without a level, because the runtime then uses a
 * random one for each container.
 */
function contextOf({ user, level }: SELinuxOptions, fileContext: string): string | undefined {
  if (level === undefined || level === '') return undefined;
  const [usualUser, role, type] = fileContext.split(':');
  const parts = { user, level };
  for (const [field, text] of Object.entries(parts))
    if (text !== undefined && !labelPart.test(text))
      throw wrong(`seLinuxOptions.${field}`, 'part of an SELinux label', text);
  return [user || usualUser, role, type, level].join(':');
}
