import { Waiters } from '../../src/lib/index.ts';
import type { Durability, StoredChange } from '../../src/local-api/api/index.ts';

/** A fake of the store's durability that persists changes only when the test requests it. */
export class ScriptedDurability implements Durability {
  readonly appended: number[] = [];
  readonly #waiters = new Waiters<void>();
  readonly #told = new Set<(version: number) => void>();
  committed = 0;
  broken: Error | undefined;
  /** The maximum number of pending changes; further ones are rejected. */
  room = Number.POSITIVE_INFINITY;

  get waiting(): number {
    return this.appended.filter((version) => version > this.committed).length;
  }

  get acceptsWrites(): boolean {
    return this.broken === undefined && this.waiting < this.room;
  }

  append({ version }: StoredChange): void {
    this.appended.push(version);
  }

  async whenCommitted(version: number, signal: AbortSignal): Promise<void> {
    while (this.committed < version) {
      if (this.broken !== undefined) throw this.broken;
      await this.#waiters.wait(signal);
    }
  }

  onCommitted(told: (version: number) => void): Disposable {
    this.#told.add(told);
    return { [Symbol.dispose]: () => void this.#told.delete(told) };
  }

  commit(version: number): void {
    this.committed = version;
    for (const told of this.#told) told(version);
    this.#waiters.resolveAll();
  }

  break(error: Error): void {
    this.broken = error;
    this.#waiters.resolveAll();
  }
}
