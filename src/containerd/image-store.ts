import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, KubelingError, type Random, randomHex } from '../lib/index.ts';
import { busyboxImage } from './busybox-image.ts';
import type { Snapshotter } from './config.ts';
import type { Layout } from './layout.ts';
import type { Run } from './machine.ts';
import { imageArchitecture } from './oci-image.ts';
import { pauseImage, pauseImageName } from './pause-image.ts';

export interface ImageStoreDeps {
  readonly layout: Layout;
  readonly ctr: string;
  readonly snapshotter: Snapshotter;
  readonly run: Run;
  readonly random: Random;
}

/** Imports locally built images into a private containerd. */
export class ImageStore {
  readonly #deps: ImageStoreDeps;

  constructor(deps: ImageStoreDeps) {
    this.#deps = deps;
  }

  async has(name: string, signal: AbortSignal): Promise<boolean> {
    const { stdout } = await this.#ctr(['images', 'ls', '-q', `name==${name}`], signal);
    return stdout.split('\n').includes(name);
  }

  /** Imports an archive of `buildImage`; replaces an image of the same name. */
  async importArchive(archive: Uint8Array, signal: AbortSignal): Promise<void> {
    const { layout, snapshotter, random } = this.#deps;
    const file = join(layout.dir, `import-${randomHex(random, 8)}.tar`);
    try {
      await writeFile(file, archive, { mode: 0o600 });
      await this.#ctr(['images', 'import', '--snapshotter', snapshotter, '--', file], signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new KubelingError('CONTAINERD_IMPORT', `Cannot import an image: ${describeError(error)}`, {
        cause: error,
      });
    } finally {
      await rm(file, { force: true });
    }
  }

  /** Imports the pause image, which sandboxes require and no registry provides. */
  async ensurePause(signal: AbortSignal): Promise<void> {
    if (await this.has(pauseImageName, signal)) return;
    await this.importArchive(pauseImage(imageArchitecture(process.arch)), signal);
  }

  /** Builds and imports the busybox image from a static busybox of this machine. */
  async importBusybox(program: string, signal: AbortSignal): Promise<void> {
    const { stdout } = await this.#deps.run(program, ['--list'], signal);
    const archive = busyboxImage({
      architecture: imageArchitecture(process.arch),
      program: await readFile(program),
      applets: stdout.split('\n').filter((line) => line !== ''),
    });
    await this.importArchive(archive, signal);
  }

  async #ctr(args: readonly string[], signal: AbortSignal) {
    const { ctr, layout, run } = this.#deps;
    return await run(ctr, ['-a', layout.socket, '-n', 'k8s.io', ...args], signal);
  }
}
