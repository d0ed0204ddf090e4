/**
 * The streams of a connection by their numbers, which are odd and only grow: a hash table with the next free place for
 * those whose own is taken. A Map would do, but each time it makes itself new the old content points to the new one,
 * so that streams which are over live on until the collector next cleans up thoroughly; with thousands of short streams
 * that costs as much as all else.
 */
export class StreamTable<Stream extends { readonly id: number }> {
  /** Its length is a power of two, and at least half of it is empty. */
  #places: (Stream | undefined)[] = new Array(16).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    return this.#places[this.#find(id)];
  }

  /** The stream's number is not in the table. */
  add(stream: Stream): void {
    if (this.#size * 2 >= this.#places.length) this.#resize(this.#places.length * 2);
    this.#places[this.#find(stream.id)] = stream;
    this.#size++;
  }

  /** Whether it was in the table. */
  delete(id: number): boolean {
    let hole = this.#find(id);
    if (this.#places[hole] === undefined) return false;
    const mask = this.#places.length - 1;
    this.#size--;
    // Moves up entries that were displaced by this one, so that no search ends too early.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const stream = this.#places[at];
      if (stream === undefined) break;
      const isPastHole = ((at - this.#home(stream.id)) & mask) >= ((at - hole) & mask);
      if (!isPastHole) continue;
      this.#places[hole] = stream;
      hole = at;
    }
    this.#places[hole] = undefined;
    return true;
  }

  /** The current streams, in no order. */
  all(): Stream[] {
    return this.#places.filter((stream) => stream !== undefined);
  }

  #home(id: number): number {
    return (id >>> 1) & (this.#places.length - 1);
  }

  /** The index of the stream, or of its free slot. */
  #find(id: number): number {
    const mask = this.#places.length - 1;
    let at = this.#home(id);
    for (let found = this.#places[at]; found !== undefined && found.id !== id; found = this.#places[at]) {
      at = (at + 1) & mask;
    }
    return at;
  }

  #resize(length: number): void {
    const streams = this.all();
    this.#places = new Array(length).fill(undefined);
    for (const stream of streams) this.#places[this.#find(stream.id)] = stream;
  }
}
