import { KubelingError } from '../../lib/index.ts';

/** The wire types of protobuf: the low three bits of a tag. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const maxNesting = 100;

/** Appends protobuf wire data to a growing buffer. */
export class WireWriter {
  #buffer: Buffer;
  #at = 0;

  constructor(size = 256) {
    this.#buffer = Buffer.allocUnsafe(size);
  }

  /** The encoded bytes; the writer does not reuse their buffer. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  /** Writes a 32-bit unsigned number, a tag or a length. */
  uint32(value: number): void {
    this.#reserve(5);
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.#buffer[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#buffer[this.#at++] = rest;
  }

  /**
   * Writes a 32-bit signed number; negative ones take ten bytes, as their 64-bit extension does.
   */
  int32(value: number): void {
    if (value >= 0) this.uint32(value);
    else this.uint64(BigInt(value));
  }

  /** Writes any 64-bit number in two's complement. */
  uint64(value: bigint): void {
    const bits = BigInt.asUintN(64, value);
    this.#reserve(10);
    let low = Number(bits & 0xffff_ffffn);
    let high = Number(bits >> 32n);
    while (high > 0 || low > 0x7f) {
      this.#buffer[this.#at++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#buffer[this.#at++] = low;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
  }

  float(value: number): void {
    this.#reserve(4);
    this.#at = this.#buffer.writeFloatLE(value, this.#at);
  }

  bytes(value: Uint8Array): void {
    this.uint32(value.length);
    this.#reserve(value.length);
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  string(value: string): void {
    if (value.length < 48 && this.#shortAscii(value)) return;
    const length = Buffer.byteLength(value);
    this.uint32(length);
    this.#reserve(length);
    this.#at += this.#buffer.write(value, this.#at, length);
  }

  /**
   * Writes a short ASCII string without a native call, because most strings are short and the call
   * would be slower; returns false for other strings.
   */
  #shortAscii(value: string): boolean {
    this.#reserve(value.length + 1);
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      this.#buffer[this.#at + 1 + index] = code;
    }
    this.#buffer[this.#at] = value.length;
    this.#at += value.length + 1;
    return true;
  }

  /** Begins a length-prefixed part; pass the result to `end`. */
  begin(): number {
    this.#reserve(1);
    return this.#at++;
  }

  end(start: number): void {
    const length = this.#at - start - 1;
    if (length <= 0x7f) {
      this.#buffer[start] = length;
      return;
    }
    // The length needs more than the one reserved byte: the content is moved to make space.
    const prefix = lengthOfVarint(length);
    this.#reserve(prefix - 1);
    this.#buffer.copyWithin(start + prefix, start + 1, this.#at);
    this.#at = start;
    this.uint32(length);
    this.#at = start + prefix + length;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    this.#buffer.copy(grown, 0, 0, this.#at);
    this.#buffer = grown;
  }
}

function lengthOfVarint(value: number): number {
  let length = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) length++;
  return length;
}

/** The maximum number of values in a message: twice as many as a list of 10,000 containers has. */
const maxValues = 1_000_000;
const maxMessages = 250_000;

/**
 * Reads protobuf wire data. Every read is checked against the end of the data: malformed input
 * throws, and nothing is read past the end.
 */
export class WireReader {
  readonly #buffer: Buffer;
  #at = 0;
  #end: number;
  #depth = 0;
  #values = 0;
  #parts = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.byteLength;
  }

  /** Whether the current part was read completely. */
  get done(): boolean {
    return this.#at >= this.#end;
  }

  /** Reads the tag of a field: its number shifted left by three, with its wire type. */
  tag(): number {
    this.count();
    const tag = this.uint32();
    if (tag >>> 3 === 0) throw malformed('a field has the number 0');
    return tag;
  }

  /**
   * Counts a value towards the limit. Two bytes of input can become an object, so a limit of the
   * input size bounds neither time nor memory.
   */
  count(): void {
    if (++this.#values > maxValues) throw malformed(`it has more than ${maxValues} values`);
  }

  /** Reads the low 32 bits of a number. */
  uint32(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    let result = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) result |= (byte & 0x7f) << shift;
      if (byte < 0x80) return result >>> 0;
    }
    throw malformed('a number has too many bytes');
  }

  int32(): number {
    return this.uint32() | 0;
  }

  uint64(): bigint {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte();
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) return joined(low >>> 0, high >>> 0);
    }
    throw malformed('a number has too many bytes');
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  bool(): boolean {
    const byte = this.#byte();
    if (byte < 0x80) return byte !== 0;
    this.#at--;
    return this.uint64() !== 0n;
  }

  double(): number {
    return this.#buffer.readDoubleLE(this.#take(8));
  }

  float(): number {
    return this.#buffer.readFloatLE(this.#take(4));
  }

  string(): string {
    const start = this.#take(this.uint32());
    return start === this.#at ? '' : this.#buffer.toString(undefined, start, this.#at);
  }

  /**
   * Reads bytes as a copy, because the input may be part of a larger buffer that should not be
   * retained.
   */
  bytes(): Buffer {
    const start = this.#take(this.uint32());
    return Buffer.from(this.#buffer.subarray(start, this.#at));
  }

  /**
   * Enters a length-prefixed part; `done` becomes true at the end of the part. Pass the returned
   * value to `leave`.
   */
  enter(): number {
    const length = this.uint32();
    if (length > this.#end - this.#at)
      throw malformed('a nested message is longer than the message that contains it');
    if (++this.#depth > maxNesting) throw malformed(`messages are nested more than ${maxNesting} deep`);
    if (++this.#parts > maxMessages) throw malformed(`it has more than ${maxMessages} messages in it`);
    const outer = this.#end;
    this.#end = this.#at + length;
    return outer;
  }

  leave(outer: number): void {
    this.#at = this.#end;
    this.#end = outer;
    this.#depth--;
  }

  skip(type: number): void {
    if (type === wireType.varint) this.uint64();
    else if (type === wireType.fixed64) this.#take(8);
    else if (type === wireType.bytes) this.#take(this.uint32());
    else if (type === wireType.fixed32) this.#take(4);
    else throw malformed(`wire type ${type} is unknown`);
  }

  #byte(): number {
    const byte = this.#at < this.#end ? this.#buffer[this.#at] : undefined;
    if (byte === undefined) throw malformed('the data ends inside a field');
    this.#at++;
    return byte;
  }

  /** Skips the given number of bytes; returns their offset. */
  #take(bytes: number): number {
    const start = this.#at;
    if (bytes > this.#end - start) throw malformed('the data ends inside a field');
    this.#at = start + bytes;
    return start;
  }
}

/**
 * A 64-bit number that a double represents exactly is converted through a double, because it is
 * faster.
 */
function joined(low: number, high: number): bigint {
  return high < 2 ** 21 ? BigInt(high * 2 ** 32 + low) : (BigInt(high) << 32n) | BigInt(low);
}

function malformed(why: string): KubelingError {
  return new KubelingError('PROTOBUF_MALFORMED', `Cannot read a protobuf message as ${why}`);
}
