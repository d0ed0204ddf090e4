import { TypedEvents } from '../../src/lib/index.ts';
import type { Durability, StoredChange } from '../../src/local-api/api/index.ts';

/**
 * A fake of the store's durability that persists nothing: every change counts as durable
 * immediately.
 */
export function noDurability(): Durability {
  return new Forgetful();
}

class Forgetful implements Durability {
  readonly #events = new TypedEvents<{ committed: number }>((error) => {
    throw error;
  });
  readonly acceptsWrites = true;
  #committed = 0;

  get committed(): number {
    return this.#committed;
  }

  append({ version }: StoredChange): void {
    this.#committed = version;
    this.#events.emit('committed', version);
  }

  async whenCommitted(_version: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
  }

  onCommitted(told: (version: number) => void): Disposable {
    return this.#events.on('committed', told);
  }
}
