import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { markerFileMode, markerMode, readyFile } from '../manager/prepare-volume.ts';
import { PodVolumePaths } from '../projected/payload-paths.ts';

const emptyDirMode = 0o777;
const setGroupBit = 0o2000;

/** What they need of the machine's files. */
export interface SharedDirectories {
  makeDirectory(path: string, mode: number): Promise<void>;
  /** With exactly this mode and group from its first moment on, and as told if it is there already. */
  makeSharedDirectory(
    path: string,
    as: { readonly mode: number; readonly group?: number; readonly ifThere: 'stays' | 'gets-them' },
  ): Promise<void>;
  /** Makes an empty file; what is there already stays. */
  makeFile(path: string, mode: number): Promise<void>;
  exists(path: string): Promise<boolean>;
}

export interface DiskEmptyDirsDeps {
  /** Where the directories of pods are. */
  readonly podsDir: string;
  readonly files: SharedDirectories;
  /** Holds a directory to a size; none is held unless given. */
  readonly limit?: LimitDirectory | undefined;
}

/** Never rejects but for the signal: whatever cannot be held is told to whom it concerns. */
export type LimitDirectory = (directory: string, bytes: bigint, signal: AbortSignal) => Promise<void>;

/** The empty directories of pods that lie on their disk. */
export class DiskEmptyDirs {
  readonly #deps: DiskEmptyDirsDeps;

  constructor(deps: DiskEmptyDirsDeps) {
    this.#deps = deps;
  }

  /**
   * May be repeated, by another kubelet too: one with its marker is as its pod has it, and one without was never whole.
   * Whoever removes it removes the marker first.
   */
  async make(pod: Pod, { name, emptyDir }: Volume, signal: AbortSignal): Promise<void> {
    const { podsDir, files, limit } = this.#deps;
    const places = new PodVolumePaths(podsDir, pod.metadata.uid);
    const marker = places.emptyDirMarker(name);
    const ready = posix.join(marker, readyFile);
    const isMarked = await files.exists(ready);
    const ifThere = isMarked ? 'stays' : 'gets-them';
    const directory = places.emptyDir(name);
    await files.makeSharedDirectory(directory, { ...sharedBy(pod), ifThere });
    if (isMarked) return;
    const bytes = limitOf(emptyDir?.sizeLimit);
    if (bytes > 0n) await limit?.(directory, bytes, signal);
    await files.makeDirectory(marker, markerMode);
    await files.makeFile(ready, markerFileMode);
  }
}

/** 0 for none. */
function limitOf(sizeLimit: string | undefined): bigint {
  const limit = sizeLimit === undefined ? undefined : tryParseQuantity(sizeLimit);
  return limit === undefined ? 0n : quantityValue(limit);
}

/** Everybody in the pod may write there; with a group of its volumes, what is written belongs to that group. */
function sharedBy({ spec }: Pod): { readonly mode: number; readonly group?: number } {
  const group = spec.securityContext?.fsGroup;
  return group === undefined ? { mode: emptyDirMode } : { mode: emptyDirMode | setGroupBit, group };
}
