/** D-Bus values, encoded by their signature. */

/** A value of each D-Bus type; a variant has its own signature. */
export type DbusValue = number | bigint | boolean | string | DbusVariant | readonly DbusValue[];

export interface DbusVariant {
  readonly signature: string;
  readonly value: DbusValue;
}

const alignments: Readonly<Record<string, number>> = {
  y: 1,
  g: 1,
  v: 1,
  n: 2,
  q: 2,
  b: 4,
  i: 4,
  u: 4,
  h: 4,
  s: 4,
  o: 4,
  a: 4,
  x: 8,
  t: 8,
  d: 8,
  '(': 8,
  '{': 8,
};

/** Splits a signature into its single complete types. */
export function splitSignature(signature: string): readonly string[] {
  const types: string[] = [];
  for (let at = 0; at < signature.length; ) {
    const end = typeEnd(signature, at);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function typeEnd(signature: string, start: number): number {
  const kind = signature[start];
  if (kind === 'a') return typeEnd(signature, start + 1);
  if (kind === '(' || kind === '{') {
    const close = kind === '(' ? ')' : '}';
    let at = start + 1;
    while (at < signature.length && signature[at] !== close) at = typeEnd(signature, at);
    if (at >= signature.length) throw malformed(`the signature ${signature} does not end`);
    return at + 1;
  }
  if (kind === undefined || alignments[kind] === undefined)
    throw malformed(`the signature ${signature} has no such type: ${kind ?? 'none'}`);
  return start + 1;
}

/** The types of the members of a struct or of a dictionary entry. */
function inner(type: string): readonly string[] {
  return splitSignature(type.slice(1, -1));
}

export function malformed(why: string): Error {
  return new Error(`Cannot read a message of D-Bus: ${why}`);
}

export class ValueWriter {
  readonly #bytes: number[] = [];

  write(signature: string, values: readonly DbusValue[]): this {
    splitSignature(signature).forEach((type, index) => {
      const value = values[index];
      if (value === undefined) throw new Error(`Cannot write ${signature}: a value is missing for ${type}`);
      this.#one(type, value);
    });
    return this;
  }

  align(to: number): this {
    while (this.#bytes.length % to !== 0) this.#bytes.push(0);
    return this;
  }

  bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }

  #one(type: string, value: DbusValue): void {
    const kind = type[0] ?? '';
    this.align(alignments[kind] ?? 1);
    if (kind === 'y') this.#bytes.push(Number(value));
    else if (kind === 'b') this.#number(value === true ? 1n : 0n, 4);
    else if ('nq'.includes(kind)) this.#number(BigInt(value as number), 2);
    else if ('iuh'.includes(kind)) this.#number(BigInt(value as number), 4);
    else if ('xt'.includes(kind)) this.#number(BigInt(value as bigint), 8);
    else if (kind === 'd') this.#double(Number(value));
    else if ('so'.includes(kind)) this.#text(String(value), 4);
    else if (kind === 'g') this.#text(String(value), 1);
    else if (kind === 'v') this.#variant(value as DbusVariant);
    else if (kind === 'a') this.#array(type.slice(1), value as readonly DbusValue[]);
    else this.write(type.slice(1, -1), value as readonly DbusValue[]);
  }

  #number(value: bigint, size: number): void {
    for (let at = 0; at < size; at++) this.#bytes.push(Number((value >> BigInt(8 * at)) & 0xffn));
  }

  #double(value: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    this.#bytes.push(...bytes);
  }

  #text(text: string, lengthSize: number): void {
    const bytes = Buffer.from(text, 'utf8');
    this.#number(BigInt(bytes.length), lengthSize);
    this.#bytes.push(...bytes, 0);
  }

  #variant({ signature, value }: DbusVariant): void {
    this.#text(signature, 1);
    this.#one(signature, value);
  }

  /**
   * The encoded length of an array excludes the length field itself and the padding before the
   * first element.
   */
  #array(type: string, values: readonly DbusValue[]): void {
    const lengthAt = this.#bytes.length;
    this.#number(0n, 4);
    this.align(alignments[type[0] ?? ''] ?? 1);
    const start = this.#bytes.length;
    for (const value of values) this.#one(type, value);
    const length = BigInt(this.#bytes.length - start);
    for (let at = 0; at < 4; at++) this.#bytes[lengthAt + at] = Number((length >> BigInt(8 * at)) & 0xffn);
  }
}

/** The maximum depth of nested values; no message that the kubelet uses is nested so deeply. */
const maxDepth = 16;

export class ValueReader {
  readonly #bytes: Buffer;
  readonly #endian: 'little' | 'big';
  #at: number;
  #depth = 0;

  constructor(bytes: Buffer, endian: 'little' | 'big', at = 0) {
    this.#bytes = bytes;
    this.#endian = endian;
    this.#at = at;
  }

  get at(): number {
    return this.#at;
  }

  read(signature: string): readonly DbusValue[] {
    return splitSignature(signature).map((type) => this.#one(type));
  }

  align(to: number): void {
    this.#at = Math.ceil(this.#at / to) * to;
  }

  #one(type: string): DbusValue {
    const kind = type[0] ?? '';
    this.align(alignments[kind] ?? 1);
    if (kind === 'y') return Number(this.#number(1));
    if (kind === 'b') return this.#number(4) !== 0n;
    if (kind === 'n') return Number(BigInt.asIntN(16, this.#number(2)));
    if (kind === 'q') return Number(this.#number(2));
    if (kind === 'i') return Number(BigInt.asIntN(32, this.#number(4)));
    if ('uh'.includes(kind)) return Number(this.#number(4));
    if (kind === 'x') return BigInt.asIntN(64, this.#number(8));
    if (kind === 't') return this.#number(8);
    if (kind === 'd') return this.#double();
    if ('so'.includes(kind)) return this.#text(Number(this.#number(4)));
    if (kind === 'g') return this.#text(Number(this.#number(1)));
    return this.#nested(() => this.#compound(kind, type));
  }

  #compound(kind: string, type: string): DbusValue {
    if (kind === 'v') return this.#variant();
    if (kind === 'a') return this.#array(type.slice(1));
    return inner(type).map((each) => this.#one(each));
  }

  #nested<T>(read: () => T): T {
    if (this.#depth >= maxDepth) throw malformed('it is nested too deeply');
    this.#depth++;
    try {
      return read();
    } finally {
      this.#depth--;
    }
  }

  #take(size: number): Buffer {
    const end = this.#at + size;
    if (end > this.#bytes.length) throw malformed('it ends too early');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  #number(size: number): bigint {
    const bytes = [...this.#take(size)];
    const ordered = this.#endian === 'little' ? bytes.toReversed() : bytes;
    return ordered.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
  }

  #double(): number {
    const bytes = this.#take(8);
    return this.#endian === 'little' ? bytes.readDoubleLE() : bytes.readDoubleBE();
  }

  #text(length: number): string {
    const text = this.#take(length).toString('utf8');
    this.#take(1);
    return text;
  }

  #variant(): DbusVariant {
    const signature = this.#text(Number(this.#number(1)));
    const [value, ...others] = this.read(signature);
    if (value === undefined || others.length > 0) throw malformed(`a variant is one value, not ${signature}`);
    return { signature, value };
  }

  #array(type: string): readonly DbusValue[] {
    const length = Number(this.#number(4));
    this.align(alignments[type[0] ?? ''] ?? 1);
    const end = this.#at + length;
    if (end > this.#bytes.length) throw malformed('an array ends too early');
    if (type === 'y') return [...this.#take(length)];
    const values: DbusValue[] = [];
    while (this.#at < end) values.push(this.#one(type));
    return values;
  }
}
