import type { CSIDriver, SELinuxOptions } from '../../kinds/index.ts';
import { claimNameOf, type Pod } from '../../pods/index.ts';
import { wrong } from '../manager/mount-options.ts';
import { containersOf } from '../manager/volume-paths.ts';
import { unusable } from '../projected/payload.ts';
import type { CsiVolume } from './csi-request.ts';

/** Drivers put the label between quotes into options for mount(8): it must not have any of its own. */
const labelPart = /^[\w.:,-]*$/;

/** A machine with SELinux. */
export interface SelinuxFacts {
  /** Of the files of containers, without what sets those of one pod apart. */
  readonly fileContext: string;
  /** Which volumes are mounted with a label: those for one pod at a time, unless it is said to be all. */
  readonly labelled?: 'one-pod' | 'all' | undefined;
}

/**
 * The context that all files of the volume are to be shown with, so that none has to be labelled by itself; undefined
 * where they are labelled one by one. Throws for containers that would need several.
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

/** The option in the form in which drivers hand it to mount. */
export function contextOption(context: string): string {
  return `context=${JSON.stringify(context)}`;
}

export function withContext(volume: CsiVolume, context: string | undefined): CsiVolume {
  if (context === undefined) return volume;
  return { ...volume, mountOptions: [...volume.mountOptions, contextOption(context)] };
}

function optionsFor(pod: Pod, { claim }: CsiVolume): readonly SELinuxOptions[] {
  const volumes = (pod.spec.volumes ?? []).filter((one) => claimNameOf(pod, one) === claim);
  const names = new Set(volumes.map(({ name }) => name));
  return containersOf(pod)
    .filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => names.has(name)))
    .flatMap(
      ({ securityContext }) =>
        securityContext?.seLinuxOptions ?? pod.spec.securityContext?.seLinuxOptions ?? [],
    );
}

/** Without a level of its own the runtime picks one for each container, which nobody knows beforehand. */
function contextOf({ user, level }: SELinuxOptions, fileContext: string): string | undefined {
  if (level === undefined || level === '') return undefined;
  const [usualUser, role, type] = fileContext.split(':');
  const parts = { user, level };
  for (const [field, text] of Object.entries(parts))
    if (text !== undefined && !labelPart.test(text))
      throw wrong(`seLinuxOptions.${field}`, 'part of an SELinux label', text);
  return [user || usualUser, role, type, level].join(':');
}
