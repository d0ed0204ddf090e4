import type { RuntimeFiles } from '../../../src/runtime/index.ts';
import type { VolumeFileKind, VolumeFiles } from '../../../src/volumes/index.ts';
import type { MemoryVolumeFiles } from '../../fakes/memory-volume-files.ts';

export interface JointFiles {
  readonly files: RuntimeFiles;
  readonly volumeFiles: VolumeFiles;
}

/**
 * Combines two in-memory trees: one with the data of the runtime and the pod checkpoints, one with
 * volumes and their mounts. Reading a directory returns entries of both, removing it removes both.
 */
export function jointFiles(plain: RuntimeFiles, memory: MemoryVolumeFiles): JointFiles {
  const names = async (directory: string) => {
    const halves = await Promise.all([plain.names(directory), memory.names(directory)]);
    return [...new Set(halves.flat())].sort();
  };
  const kindAt = async (path: string) => (await memory.kindAt(path)) ?? (await plain.kindAt(path));
  // Removing a mount point throws here, before either tree is changed.
  const remove = async (path: string) => {
    await memory.removeTree(path);
    await plain.remove(path);
  };
  const removeEmptyDirectory = async (directory: string) => {
    if ((await names(directory)).length > 0) return 'not-empty';
    await memory.removeEmptyDirectory(directory);
    return await plain.removeEmptyDirectory(directory);
  };
  return {
    files: {
      ...plain,
      ...{ names, kindAt, remove, removeEmptyDirectory },
      makeSharedDirectory: (path, { mode }) => memory.makeDirectory(path, mode),
      exists: async (path) => (await kindAt(path)) !== undefined,
    },
    volumeFiles: withParts<VolumeFiles>(memory, {
      kindAt: async (path) => (await kindAt(path)) as VolumeFileKind | undefined,
      ...{ names, removeTree: remove, removeEmptyDirectory },
    }),
  };
}

/** Returns a view of the object in which some members are replaced. */
export function withParts<T extends object>(whole: T, parts: Partial<T>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      if (Object.hasOwn(parts, name)) return Reflect.get(parts, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The mounts in the format of /proc/self/mountinfo, with the fields that kubeling reads. */
export function mountinfoOf(memory: Pick<MemoryVolumeFiles, 'mounts'>): string {
  const line = (directory: string, index: number) =>
    `${index + 2} 1 0:${index + 2} / ${directory} rw - tmpfs tmpfs rw\n`;
  return memory
    .mounts()
    .map(({ directory }, index) => line(directory, index))
    .join('');
}
