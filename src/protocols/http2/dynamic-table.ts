export type HeaderField = readonly [name: string, value: string];

/** What a header counts for, in tables and in the limits on lists of them. */
export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + 32;
}

/** The headers a sender of header blocks refers back to, the newest first; the oldest go when room is needed. */
export class DynamicTable {
  /** The oldest first, so that adding moves nothing. */
  readonly #fields: HeaderField[] = [];
  #bytes = 0;
  #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#fields.length;
  }

  /** By age, beginning with 0 for the newest; undefined past the oldest. */
  at(age: number): HeaderField | undefined {
    return this.#fields[this.#fields.length - 1 - age];
  }

  /** One that is larger than the whole table empties it and is not kept, which is no error. */
  add(field: HeaderField): void {
    this.#fields.push(field);
    this.#bytes += fieldBytes(...field);
    this.#evict();
  }

  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    this.#evict();
  }

  #evict(): void {
    let gone = 0;
    for (const field of this.#fields) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#bytes -= fieldBytes(...field);
      gone++;
    }
    if (gone > 0) this.#fields.splice(0, gone);
  }
}
