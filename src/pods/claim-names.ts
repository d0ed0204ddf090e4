import type { Volume } from '../kinds/index.ts';
import type { Pod } from './pod.ts';

/** The claim behind a volume: the one it names, or the one that is made for it; undefined for volumes of other kinds. */
export function claimNameOf({ metadata }: Pod, volume: Volume): string | undefined {
  const { name, persistentVolumeClaim, ephemeral } = volume;
  if (persistentVolumeClaim !== undefined) return persistentVolumeClaim.claimName;
  return ephemeral === undefined ? undefined : `${metadata.name}-${name}`;
}
