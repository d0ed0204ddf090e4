import { TypedEvents } from '../../lib/index.ts';

/** Namespaces somebody insisted to be rid of: what holds their contents is not waited for. */
export class ForcedEnds {
  readonly #uids = new Set<string>();
  readonly #events = new TypedEvents<{ added: string }>((error) => {
    throw error;
  });

  add({ name, uid }: { readonly name: string; readonly uid: string }): void {
    this.#uids.add(uid);
    this.#events.emit('added', name);
  }

  has(uid: string): boolean {
    return this.#uids.has(uid);
  }

  forget(uid: string): void {
    this.#uids.delete(uid);
  }

  /** Calls back with the name of each, at once. */
  onAdded(told: (name: string) => void): Disposable {
    return this.#events.on('added', told);
  }
}
