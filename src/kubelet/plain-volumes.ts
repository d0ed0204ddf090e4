import { posix } from 'node:path';
import type { Pod } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import type { PodDirectories } from './pod-files.ts';

type PathVolume = { readonly kind: 'path'; readonly hostPath: string };

const emptyDirMode = 0o777;

/** The volumes that need no mount: paths of the host, and empty directories on the disk of the pods. */
export class PlainVolumes {
  readonly #directories: PodDirectories;
  readonly #files: RuntimeFiles;

  constructor(directories: PodDirectories, files: RuntimeFiles) {
    this.#directories = directories;
    this.#files = files;
  }

  /** Where each is to be found; a volume of another kind is missing from the answer. */
  of(pod: Pod): ReadonlyMap<string, PathVolume> {
    const found = new Map<string, PathVolume>();
    for (const { name, hostPath, emptyDir } of pod.spec.volumes ?? []) {
      if (hostPath !== undefined) found.set(name, { kind: 'path', hostPath: hostPath.path });
      else if (emptyDir !== undefined)
        found.set(name, { kind: 'path', hostPath: posix.join(this.#emptyDirs(pod), name) });
    }
    return found;
  }

  async make(pod: Pod): Promise<void> {
    for (const { name, emptyDir } of pod.spec.volumes ?? []) {
      if (emptyDir !== undefined)
        await this.#files.makeDirectory(posix.join(this.#emptyDirs(pod), name), emptyDirMode);
    }
  }

  /** To be called once nothing of the pod runs; what is on the host's own paths stays. */
  async remove(pod: Pod): Promise<void> {
    await this.#files.remove(this.#emptyDirs(pod));
  }

  #emptyDirs(pod: Pod): string {
    return posix.join(this.#directories.of(pod.metadata.uid), 'volumes', 'kubernetes.io~empty-dir');
  }
}
