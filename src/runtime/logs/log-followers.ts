import { posix } from 'node:path';
import type { LogTrail } from './log-trail.ts';

/** Those who read logs while they are written: they have hold of a file before it is removed. */
export class LogFollowers {
  readonly #trails = new Map<string, Set<LogTrail>>();

  get size(): number {
    return this.#trails.size;
  }

  /** Until it is disposed of. */
  add(path: string, trail: LogTrail): Disposable {
    const directory = posix.dirname(path);
    const trails = this.#trails.get(directory) ?? new Set();
    this.#trails.set(directory, trails.add(trail));
    return {
      [Symbol.dispose]: () => {
        trails.delete(trail);
        if (trails.size === 0 && this.#trails.get(directory) === trails) this.#trails.delete(directory);
      },
    };
  }

  /** Settles when each of them has opened what there is in the directory, or has failed to. */
  async catchUp(directory: string): Promise<void> {
    const trails = this.#trails.get(directory);
    if (trails !== undefined) await Promise.allSettled([...trails].map((trail) => trail.catchUp()));
  }
}
