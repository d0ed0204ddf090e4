/**
 * The streams of a connection by number; the numbers are odd and only increase. A hash table with
 * open addressing and linear probing. A Map would behave the same, but whenever V8 resizes a Map,
 * the Map's previous table refers to the new table and thereby retains ended streams until the next
 * full garbage collection; with thousands of short streams that costs as much CPU as everything
 * else.
 */
export class StreamTable<Stream extends { readonly id: number }> {
  /**
   * The slots of the table. Their number is a power of two, and at least half of them are empty.
   */
  #slots: (Stream | undefined)[] = new Array(16).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    return this.#slots[this.#find(id)];
  }

  /** Adds a stream whose number is not in the table. */
  add(stream: Stream): void {
    if (this.#size * 2 >= this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[this.#find(stream.id)] = stream;
    this.#size++;
  }

  /** Removes a stream; returns whether it was in the table. */
  delete(id: number): boolean {
    let hole = this.#find(id);
    if (this.#slots[hole] === undefined) return false;
    const mask = this.#slots.length - 1;
    this.#size--;
    // Moves the entries that a collision with the removed entry had displaced, so that no search
    // for them ends too early.
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

  /** The current streams, in no particular order. */
  all(): Stream[] {
    return this.#slots.filter((stream) => stream !== undefined);
  }

  #slotOf(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1);
  }

  /** The slot of the stream, or the free slot where it would be added. */
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
