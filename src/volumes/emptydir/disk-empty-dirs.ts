import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { markerFileMode, markerMode, readyFile } from '../manager/prepare-volume.ts';
import { PodVolumePaths } from '../projected/payload-paths.ts';

const emptyDirMode = 0o777;
const setGroupBit = 0o2000;

/** File operations for emptyDir volumes. */
export interface SharedDirectories {
  makeDirectory(path: string, mode: number): Promise<void>;
  /**
   * Creates a directory with exactly this mode and group; `ifExists` selects whether an existing
   * directory gets this mode and group too.
   */
  makeSharedDirectory(
    path: string,
    as: { readonly mode: number; readonly group?: number; readonly ifExists: 'keep' | 'apply' },
  ): Promise<void>;
  /** Creates an empty file; an existing file is kept. */
  makeFile(path: string, mode: number): Promise<void>;
  exists(path: string): Promise<boolean>;
}

export interface DiskEmptyDirsDeps {
  /** Parent directory of the pod directories. */
  readonly podsDir: string;
  readonly files: SharedDirectories;
  /** Sets the size limit of a directory; undefined to set no limits. */
  readonly limit?: LimitDirectory | undefined;
}

/**
 * Limits a directory to a number of bytes. Rejects only when the signal is aborted; other failures
 * are reported as node events.
 */
export type LimitDirectory = (directory: string, bytes: bigint, signal: AbortSignal) => Promise<void>;

/** Creates disk-backed emptyDir volumes. */
export class DiskEmptyDirs {
  readonly #deps: DiskEmptyDirsDeps;

  constructor(deps: DiskEmptyDirsDeps) {
    this.#deps = deps;
  }

  /**
   * Creates the directory of an emptyDir; idempotent, also across kubelets: a directory with a
   * marker is complete, one without a marker was interrupted. Removal deletes the marker first.
   */
  async create(pod: Pod, { name, emptyDir }: Volume, signal: AbortSignal): Promise<void> {
    const { podsDir, files, limit } = this.#deps;
    const paths = new PodVolumePaths(podsDir, pod.metadata.uid);
    const marker = paths.emptyDirMarker(name);
    const ready = posix.join(marker, readyFile);
    const isMarked = await files.exists(ready);
    const ifExists = isMarked ? 'keep' : 'apply';
    const directory = paths.emptyDir(name);
    await files.makeSharedDirectory(directory, { ...sharedBy(pod), ifExists });
    if (isMarked) return;
    const bytes = limitOf(emptyDir?.sizeLimit);
    if (bytes > 0n) await limit?.(directory, bytes, signal);
    await files.makeDirectory(marker, markerMode);
    await files.makeFile(ready, markerFileMode);
  }
}

/** Parses the size limit in bytes; 0 when there is none. */
function limitOf(sizeLimit: string | undefined): bigint {
  const limit = sizeLimit === undefined ? undefined : tryParseQuantity(sizeLimit);
  return limit === undefined ? 0n : quantityValue(limit);
}

/**
 * Mode and group of the directory: all users may write, and with an fsGroup new files belong to
 * that group.
 */
function sharedBy({ spec }: Pod): { readonly mode: number; readonly group?: number } {
  const group = spec.securityContext?.fsGroup;
  return group === undefined ? { mode: emptyDirMode } : { mode: emptyDirMode | setGroupBit, group };
}
