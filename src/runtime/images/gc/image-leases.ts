import { abortable, LruMap } from '../../../lib/index.ts';

const rememberedRemovals = 1_000;

interface Removal {
  readonly settled: Promise<unknown>;
  readonly isNamed: (reference: string) => boolean;
}

/**
 * Who needs an image and who removes it never meet: an image that is held is not removed, and one that is being removed
 * cannot be held. Images are known by the runtime's id.
 *
 *     mark ── ask the runtime for the image ── hold ── make the container ── release
 *
 * Between asking and holding the image may have been removed, as the answer takes its time; the mark tells. And a runtime
 * may fail to pull what it is removing: from before the look until it is held an image is wanted by its name, too.
 */
export class ImageLeases {
  readonly #held = new Map<string, number>();
  /** Names that somebody looks for or pulls now; one for each. */
  readonly #reserved = new Set<{ readonly reference: string }>();
  readonly #removing = new Map<string, Removal>();
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

  /** Until it is disposed of nothing of that name is removed, and nothing is being removed when it answers. */
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

  /** Undefined when the image was removed since the mark, or is so now: then that has ended, and it is to be asked for again. */
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

  /** Whether what was known of the image before may not hold any more. */
  wasRemoved(id: string): boolean {
    return this.#removing.has(id) || this.#removed.peek(id) !== undefined;
  }

  /** Runs the removal unless somebody holds the image or wants it by name; whoever wants to hold it meanwhile waits. */
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
