import { onAbort } from './abort.ts';

/** A number of places, handed on in the order they were asked for. */
export class Slots {
  #free: number;
  readonly #line = new Map<string, () => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#line.size;
  }

  /** Counted from 1; undefined for who does not wait. */
  placeOf(who: string): number | undefined {
    const at = [...this.#line.keys()].indexOf(who);
    return at < 0 ? undefined : at + 1;
  }

  /** `who` has at most one place in the line. */
  async take(who: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(who, signal);
    return { [Symbol.dispose]: () => this.#giveBack() };
  }

  #wait(who: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#line.set(who, go);
      const link = onAbort(signal, (reason) => {
        this.#line.delete(who);
        reject(reason);
      });
    });
  }

  #giveBack(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [who, go] = next;
    this.#line.delete(who);
    go();
  }
}
