import { onAbort } from './abort.ts';

/** A number of places, handed on in the order they were asked for. */
export class Semaphore {
  #free: number;
  readonly #queue = new Map<string, () => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Counted from 1; undefined for who does not wait. */
  positionOf(who: string): number | undefined {
    const at = [...this.#queue.keys()].indexOf(who);
    return at < 0 ? undefined : at + 1;
  }

  /** `who` has at most one place in the line. */
  async acquire(who: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(who, signal);
    return { [Symbol.dispose]: () => this.#release() };
  }

  #wait(who: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#queue.set(who, go);
      const link = onAbort(signal, (reason) => {
        this.#queue.delete(who);
        reject(reason);
      });
    });
  }

  #release(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [who, go] = next;
    this.#queue.delete(who);
    go();
  }
}
