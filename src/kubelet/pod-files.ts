import { posix } from 'node:path';
import type { PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';

const directoryMode = 0o750;

/** The directories of pods under the root directory: one for each, named by its UID. */
export class PodDirectories {
  readonly podsDir: string;
  readonly #files: RuntimeFiles;

  constructor(rootDir: string, files: RuntimeFiles) {
    this.podsDir = posix.join(rootDir, 'pods');
    this.#files = files;
  }

  of(uid: PodUid): string {
    return posix.join(this.podsDir, uid);
  }

  /** Fine when they are there already. */
  async make(uid: PodUid): Promise<void> {
    for (const name of ['volumes', 'plugins', 'containers']) {
      await this.#files.makeDirectory(posix.join(this.of(uid), name), directoryMode);
    }
  }

  async list(): Promise<readonly PodUid[]> {
    return (await this.#files.names(this.podsDir)) as readonly PodUid[];
  }

  /** Everything but volumes, which belong to whoever mounted them; their directory goes only when it is empty. */
  async remove(uid: PodUid): Promise<'removed' | 'volumes-left'> {
    const volumes = await this.#files.names(posix.join(this.of(uid), 'volumes'));
    if (volumes.length > 0) return 'volumes-left';
    await this.#files.remove(this.of(uid));
    return 'removed';
  }
}
