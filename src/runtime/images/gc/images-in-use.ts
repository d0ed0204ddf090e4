import type { Container, CriClient, Image } from '../../../cri/index.ts';
import { isKind } from '../../../lib/index.ts';

export type UseCri = Pick<CriClient, 'listContainers' | 'containerStatus' | 'status'>;

/** Which images containers are made of or mount: all containers the runtime lists, dead ones too. */
export class ImagesInUse {
  readonly #cri: UseCri;
  /** By container: what it mounts never changes. */
  readonly #mounted = new Map<string, readonly string[]>();

  constructor(cri: UseCri) {
    this.#cri = cri;
  }

  /** Names and ids of images in any form the runtime gives them. */
  async find(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const { containers } = await this.#cri.listContainers({}, signal);
    const listed = new Set(containers.map(({ id }) => id));
    for (const id of this.#mounted.keys()) if (!listed.has(id)) this.#mounted.delete(id);
    const used = new Set<string>();
    for (const container of containers) {
      used.add(ownImage(container));
      for (const image of await this.#imagesMountedBy(container.id, signal)) used.add(image);
    }
    used.delete('');
    return used;
  }

  /** That of the sandboxes, where the runtime tells: older ones do not pin it, and cannot do without. */
  async sandboxImages(signal: AbortSignal): Promise<readonly string[]> {
    const { info } = await this.#cri.status({ verbose: true }, signal);
    try {
      const { sandboxImage } = JSON.parse(info['config'] ?? '{}') as { readonly sandboxImage?: unknown };
      return typeof sandboxImage === 'string' && sandboxImage !== '' ? [sandboxImage] : [];
    } catch {
      return [];
    }
  }

  async #imagesMountedBy(containerId: string, signal: AbortSignal): Promise<readonly string[]> {
    const known = this.#mounted.get(containerId);
    if (known !== undefined) return known;
    try {
      const { status } = await this.#cri.containerStatus({ containerId }, signal);
      const images = (status?.mounts ?? []).flatMap(({ image }) => image?.image ?? []);
      this.#mounted.set(containerId, images);
      return images;
    } catch (error) {
      if (isKind(error, 'NotFound')) return [];
      throw error;
    }
  }
}

function ownImage({ imageId, imageRef }: Container): string {
  return imageId === '' ? imageRef : imageId;
}

/** Whether one of these names is of the image. */
export function isAmong({ id, repoDigests }: Image, names: ReadonlySet<string>): boolean {
  return names.has(id) || repoDigests.some((digest) => names.has(digest));
}
