/**
 * The streams of a connection by their numbers, which are odd and only grow: a hash table with the next free place for
 * those whose own is taken. A Map would do, but each time it makes itself new the old content points to the new one,
 * so that streams which are over live on until the collector next cleans up thoroughly; with thousands of short streams
 * that costs as much as all else.
 */
export class StreamTable<Stream extends { readonly id: number }> {
  /** Its length is a power of two, and at least half of it is empty. */
  #slots: (Stream | undefined)[] = new Array(16).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    return this.#slots[this.#find(id)];
  }

  /** The stream's number is not in the table. */
  add(stream: Stream): void {
    if (this.#size * 2 >= this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[this.#find(stream.id)] = stream;
    this.#size++;
  }

  /** Whether it was in the table. */
  delete(id: number): boolean {
    let hole = this.#find(id);
    if (this.#slots[hole] === undefined) return false;
    const mask = this.#slots.length - 1;
    this.#size--;
    // Moves up entries that were displaced by this one, so that no search ends too early.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const stream = this.#slots[at];
      if (stream === undefined) break;
      const isPastHole = ((at - this.#slotOf(stream.id)) & mask) >= ((at - hole) & mask);
      if (!isPastHole) continue;
      this.#slots[hole] = stream;
      hole = at;
    }
    this.#slots[hole] = undefined;
    return true;
  }

  /** The current streams, in no order. */
  all(): Stream[] {
    return this.#slots.filter((stream) => stream !== undefined);
  }

  #slotOf(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1);
  }

  /** The index of the stream, or of its free slot. */
  #find(id: number): number {
    const mask = this.#slots.length - 1;
    let at = this.#slotOf(id);
    for (let found = this.#slots[at]; found !== undefined && found.id !== id; found = this.#slots[at]) {
      at = (at + 1) & mask;
    }
    return at;
  }

  #resize(length: number): void {
    const streams = this.all();
    this.#slots = new Array(length).fill(undefined);
    for (const stream of streams) this.#slots[this.#find(stream.id)] = stream;
  }
}
