import { abortable, LruMap } from '../../lib/index.ts';

const rememberedRemovals = 1_000;

/**
 * Who needs an image and who removes it never meet: an image that is held is not removed, and one that is being removed
 * cannot be held. Images are known by the runtime's id.
 *
 *     mark ── ask the runtime for the image ── hold ── make the container ── release
 *
 * Between asking and holding the image may have been removed, as the answer takes its time; the mark tells.
 */
export class ImageLeases {
  readonly #held = new Map<string, number>();
  readonly #removing = new Map<string, Promise<unknown>>();
  /** When each was removed last, as a number of removals. */
  readonly #removed = new LruMap<string, number>({ capacity: rememberedRemovals });
  #removals = 0;

  /** How many images are held. */
  get size(): number {
    return this.#held.size;
  }

  /** To be taken before the runtime is asked. */
  mark(): number {
    return this.#removals;
  }

  /** Undefined when the image was removed since the mark, or is so now: then that has ended, and it is to be asked for again. */
  async hold(id: string, mark: number, signal: AbortSignal): Promise<Disposable | undefined> {
    const removing = this.#removing.get(id);
    if (removing !== undefined) {
      await abortable(removing, signal);
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

  /** Whether what was known of the image before may not hold any more. */
  wasRemoved(id: string): boolean {
    return this.#removing.has(id) || this.#removed.peek(id) !== undefined;
  }

  /** Runs the removal unless somebody holds the image; whoever wants to hold it meanwhile waits. */
  async remove<T>(id: string, act: () => Promise<T>): Promise<T | 'held'> {
    if (this.#held.has(id) || this.#removing.has(id)) return 'held';
    const work = act();
    const settled = work.catch(() => {});
    this.#removing.set(id, settled);
    try {
      return await work;
    } finally {
      // Also one that failed may have been done.
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
