import { type WireReader, type WireWriter, wireType } from './wire.ts';

export type Message = Record<string, unknown>;

/** Encodes and decodes values of one protobuf type. */
export interface ValueCodec {
  readonly wire: number;
  /**
   * Whether repeated values may be packed into one field; strings, bytes and messages never are.
   */
  readonly packable: boolean;
  write(writer: WireWriter, value: unknown): void;
  /**
   * Decodes a value. `before` is an earlier occurrence of the same field: messages are merged with
   * it, other values replace it.
   */
  read(reader: WireReader, before: unknown): unknown;
  isDefault(value: unknown): boolean;
  /** The default value; undefined for messages, because their presence is tracked. */
  readonly initial: unknown;
  normalize(value: unknown): unknown;
  /**
   * Converts the key of a map entry from text to its type, because JavaScript stores all keys as
   * text.
   */
  fromText(text: string): unknown;
}

export function enumCodec(type: string, byName: ReadonlyMap<string, number>): ValueCodec {
  const byNumber = new Map<number, string>();
  for (const [name, number] of byName) if (!byNumber.has(number)) byNumber.set(number, name);
  return {
    wire: wireType.varint,
    packable: true,
    initial: byNumber.get(0),
    isDefault: (value) => byName.get(value as string) === 0,
    write(writer, value) {
      const number = byName.get(value as string);
      if (number === undefined) throw new RangeError(`${type} has no value ${String(value)}`);
      writer.int32(number);
    },
    // A newer peer may send values that this schema does not define.
    read: (reader) => byNumber.get(reader.int32()) ?? 'UNRECOGNIZED',
    normalize: same,
    fromText: same,
  };
}

interface Scalar<T> {
  readonly wire: number;
  readonly initial: T;
  readonly write: (writer: WireWriter, value: T) => void;
  readonly read: (reader: WireReader) => T;
  readonly fromText: (text: string) => unknown;
}

function scalar<T>(options: Scalar<T>): ValueCodec {
  const { wire, initial, write, read, fromText } = options;
  const isLong = wire === wireType.bytes;
  return {
    wire,
    initial,
    packable: !isLong,
    write: write as ValueCodec['write'],
    read,
    isDefault: isLong ? isEmpty : (value) => Object.is(value, initial),
    normalize: same,
    fromText,
  };
}

function isEmpty(value: unknown): boolean {
  return (value as string | Uint8Array).length === 0;
}

function same<T>(value: T): T {
  return value;
}

/** Rejects a number that encoding would change: a bug of the caller. */
function exact<T>(given: T, onTheWire: T): T {
  if (given !== onTheWire) throw new RangeError(`${String(given)} does not fit into the field's type`);
  return given;
}

const { varint, fixed32, fixed64, bytes } = wireType;

export const scalars: Readonly<Record<string, ValueCodec | undefined>> = {
  string: scalar<string>({
    wire: bytes,
    initial: '',
    write: (writer, value) => writer.string(value),
    read: (reader) => reader.string(),
    fromText: same,
  }),
  bytes: scalar<Uint8Array>({
    wire: bytes,
    initial: Buffer.alloc(0),
    write: (writer, value) => writer.bytes(value),
    read: (reader) => reader.bytes(),
    fromText: same,
  }),
  bool: scalar<boolean>({
    wire: varint,
    initial: false,
    write: (writer, value) => writer.uint32(value ? 1 : 0),
    read: (reader) => reader.bool(),
    fromText: (text) => text === 'true',
  }),
  int32: scalar<number>({
    wire: varint,
    initial: 0,
    write: (writer, value) => writer.int32(exact(value, value | 0)),
    read: (reader) => reader.int32(),
    fromText: Number,
  }),
  uint32: scalar<number>({
    wire: varint,
    initial: 0,
    write: (writer, value) => writer.uint32(exact(value, value >>> 0)),
    read: (reader) => reader.uint32(),
    fromText: Number,
  }),
  int64: scalar<bigint>({
    wire: varint,
    initial: 0n,
    write: (writer, value) => writer.uint64(exact(value, BigInt.asIntN(64, value))),
    read: (reader) => reader.int64(),
    fromText: BigInt,
  }),
  uint64: scalar<bigint>({
    wire: varint,
    initial: 0n,
    write: (writer, value) => writer.uint64(exact(value, BigInt.asUintN(64, value))),
    read: (reader) => reader.uint64(),
    fromText: BigInt,
  }),
  double: scalar<number>({
    wire: fixed64,
    initial: 0,
    write: (writer, value) => writer.double(value),
    read: (reader) => reader.double(),
    fromText: Number,
  }),
  float: scalar<number>({
    wire: fixed32,
    initial: 0,
    write: (writer, value) => writer.float(value),
    read: (reader) => reader.float(),
    fromText: Number,
  }),
};
