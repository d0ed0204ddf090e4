interface Closable {
  close(): void;
}

/** What stays open for as long as each look at all of it asks for it again. */
export class InUse<Value extends Closable> {
  readonly #all = new Map<string, { readonly value: Value; isUsed: boolean }>();

  get size(): number {
    return this.#all.size;
  }

  get(key: string): Value | undefined {
    const found = this.#all.get(key);
    if (found !== undefined) found.isUsed = true;
    return found?.value;
  }

  /** What was there before is closed. */
  set(key: string, value: Value): Value {
    this.drop(key);
    this.#all.set(key, { value, isUsed: true });
    return value;
  }

  drop(key: string): void {
    this.#all.get(key)?.value.close();
    this.#all.delete(key);
  }

  /** What nobody asked for since the last time is closed. */
  sweep(): void {
    for (const [key, each] of this.#all) {
      if (!each.isUsed) this.drop(key);
      each.isUsed = false;
    }
  }

  close(): void {
    for (const key of this.#all.keys()) this.drop(key);
  }
}
