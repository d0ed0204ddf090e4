import { abortable, LruMap } from '../../../lib/index.ts';

const rememberedRemovals = 1_000;

interface Removal {
  readonly settled: Promise<unknown>;
  readonly isNamed: (reference: string) => boolean;
}

/**
 * Serializes use and removal of images: a held image is not removed, and an image that is being
 * removed cannot be held. Images are identified by the runtime's image ID.
 *
 *     mark ── inspect the image ── hold ── create the container ── release
 *
 * The image may be removed between its inspection and `hold`; a removal with a higher number than
 * the mark shows that. A runtime may also fail to pull an image that it is removing, so the image's
 * name is reserved from before the inspection until the image is held.
 */
export class ImageLeases {
  readonly #held = new Map<string, number>();
  /** The image names that are being inspected or pulled, one entry per caller. */
  readonly #reserved = new Set<{ readonly reference: string }>();
  readonly #removing = new Map<string, Removal>();
  /** The sequence number of the last removal of each image, by image ID. */
  readonly #removed = new LruMap<string, number>({ capacity: rememberedRemovals });
  #removals = 0;

  /** The number of held images. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Returns the sequence number of the last removal of any image; call before the image is
   * inspected.
   */
  mark(): number {
    return this.#removals;
  }

  /**
   * Reserves the name until the result is disposed of: no image of that name is removed. Resolves
   * after all running removals of images with this name have finished.
   */
  async reserve(reference: string, signal: AbortSignal): Promise<Disposable> {
    const one = { reference };
    this.#reserved.add(one);
    try {
      for (const { settled, isNamed } of [...this.#removing.values()])
        if (isNamed(reference)) await abortable(settled, signal);
    } catch (error) {
      this.#reserved.delete(one);
      throw error;
    }
    return { [Symbol.dispose]: () => void this.#reserved.delete(one) };
  }

  /**
   * Protects the image from removal. `mark` is the removal number read before the image was
   * inspected. Resolves with undefined when the image was removed after that, or when it was being
   * removed and the removal has finished; the image must then be inspected again.
   */
  async hold(id: string, mark: number, signal: AbortSignal): Promise<Disposable | undefined> {
    const removing = this.#removing.get(id);
    if (removing !== undefined) {
      await abortable(removing.settled, signal);
      return undefined;
    }
    if ((this.#removed.peek(id) ?? 0) > mark) return undefined;
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    let state: 'held' | 'released' = 'held';
    return {
      [Symbol.dispose]: () => {
        if (state === 'held') this.#release(id);
        state = 'released';
      },
    };
  }

  isHeld(id: string): boolean {
    return this.#held.has(id);
  }

  /**
   * Whether the image was removed or is being removed, so that earlier inspections of it may be
   * outdated.
   */
  wasRemoved(id: string): boolean {
    return this.#removing.has(id) || this.#removed.peek(id) !== undefined;
  }

  /**
   * Runs the removal unless the image is held or its name is reserved. A concurrent `hold` waits
   * until the removal has finished.
   */
  async remove<T>(
    id: string,
    act: () => Promise<T>,
    isNamed: (reference: string) => boolean = () => false,
  ): Promise<T | 'held'> {
    if (this.#held.has(id) || this.#removing.has(id)) return 'held';
    for (const { reference } of this.#reserved) if (isNamed(reference)) return 'held';
    const work = act();
    const settled = work.catch(() => {});
    this.#removing.set(id, { settled, isNamed });
    try {
      return await work;
    } finally {
      // A failed removal gets a number as well, because it may have removed the image.
      this.#removing.delete(id);
      this.#removed.set(id, ++this.#removals);
    }
  }

  #release(id: string): void {
    const left = (this.#held.get(id) ?? 0) - 1;
    if (left > 0) this.#held.set(id, left);
    else this.#held.delete(id);
  }
}
