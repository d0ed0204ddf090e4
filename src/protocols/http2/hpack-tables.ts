export type HeaderField = readonly [name: string, value: string];

/** The size of a header in tables and in limits of header lists. */
export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + 32;
}

/**
 * The dynamic table of HPACK: recent headers to which header blocks refer; the oldest entries are
 * evicted.
 */
export class DynamicTable {
  /** The entries, oldest first, so that adding one moves no others. */
  readonly #fields: HeaderField[] = [];
  #bytes = 0;
  #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#fields.length;
  }

  /** The entry by age, 0 for the newest; undefined if the table has fewer entries. */
  at(age: number): HeaderField | undefined {
    return this.#fields[this.#fields.length - 1 - age];
  }

  /**
   * Adds a header. A header that is larger than the whole table empties the table and is not added;
   * HPACK does not treat this as an error.
   */
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

/** The static table of HPACK, indexed from 1; the indexes of the dynamic table follow. */
export const staticTable: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
];
