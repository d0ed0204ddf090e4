import { KubelingError } from '../errors.ts';
import type { FieldDescription, Schema } from './schema.ts';
import { WireReader, WireWriter, wireType } from './wire.ts';

type Message = Record<string, unknown>;

export interface Codec {
  encode(message: Message): Buffer;
  decode(bytes: Uint8Array): Message;
  create(init: Message): Message;
  /** For messages inside messages. */
  write(writer: WireWriter, message: Message): void;
  read(reader: WireReader): Message;
}

/** How one type of value goes to and from the wire. */
interface ValueCodec {
  readonly wire: number;
  /** Repeated values may come packed into one field; strings, bytes and messages never do. */
  readonly packable: boolean;
  write(writer: WireWriter, value: unknown): void;
  read(reader: WireReader): unknown;
  isDefault(value: unknown): boolean;
  /** undefined for messages: absence shows. */
  readonly initial: unknown;
  normalize(value: unknown): unknown;
}

interface FieldCodec extends FieldDescription {
  readonly value: ValueCodec;
  readonly keyCodec: ValueCodec | undefined;
  readonly tag: number;
}

export function compileCodec(schema: Schema, name: string, descriptions: readonly FieldDescription[]): Codec {
  const fields = descriptions
    .filter((field) => field.name !== '')
    .map((field) => compileField(schema, field));
  const byNumber: (FieldCodec | undefined)[] = [];
  for (const field of fields) byNumber[field.number] = field;

  const empty = (): Message => {
    const message: Message = {};
    for (const field of fields) message[field.name] = initialOf(field);
    return message;
  };
  const read = (reader: WireReader): Message => {
    const message = empty();
    while (!reader.done) {
      const tag = reader.uint32();
      const field = byNumber[tag >>> 3];
      if (field === undefined) reader.skip(tag & 7);
      else readField(reader, tag & 7, field, message);
    }
    return message;
  };
  const write = (writer: WireWriter, message: Message): void => {
    for (const field of fields) {
      const value = message[field.name];
      if (value !== undefined) inContext(name, field, () => writeField(writer, field, value));
    }
  };
  return {
    write,
    read,
    encode(message) {
      const writer = new WireWriter();
      write(writer, message);
      return writer.finish();
    },
    decode: (bytes) => read(new WireReader(bytes)),
    create(init) {
      const message = empty();
      for (const field of fields) {
        const value = init[field.name];
        if (value !== undefined) message[field.name] = normalizeField(field, value);
      }
      return message;
    },
  };
}

function compileField(schema: Schema, field: FieldDescription): FieldCodec {
  const value = valueCodec(schema, field.type);
  const wire = field.label === 'map' ? wireType.bytes : value.wire;
  return {
    ...field,
    value,
    keyCodec: field.key === undefined ? undefined : valueCodec(schema, field.key),
    tag: (field.number << 3) | (field.label === 'repeated' && value.packable ? wireType.bytes : wire),
  };
}

function initialOf(field: FieldCodec): unknown {
  if (field.label === 'repeated') return [];
  if (field.label === 'map') return {};
  return field.label === 'optional' ? undefined : field.value.initial;
}

function normalizeField(field: FieldCodec, value: unknown): unknown {
  if (field.label === 'repeated') return (value as unknown[]).map(field.value.normalize);
  if (field.label === 'map') {
    const entries = Object.entries(value as Message);
    return Object.fromEntries(entries.map(([key, item]) => [key, field.value.normalize(item)]));
  }
  return field.value.normalize(value);
}

function writeField(writer: WireWriter, field: FieldCodec, value: unknown): void {
  if (field.label === 'repeated') writeRepeated(writer, field, value as readonly unknown[]);
  else if (field.label === 'map') writeMap(writer, field, value as Message);
  else if (field.label === 'optional' || !field.value.isDefault(value)) {
    writer.uint32(field.tag);
    field.value.write(writer, value);
  }
}

function writeRepeated(writer: WireWriter, field: FieldCodec, values: readonly unknown[]): void {
  if (values.length === 0) return;
  if (field.value.packable) {
    writer.uint32(field.tag);
    writer.nested(() => {
      for (const value of values) field.value.write(writer, value);
    });
    return;
  }
  for (const value of values) {
    writer.uint32(field.tag);
    field.value.write(writer, value);
  }
}

function writeMap(writer: WireWriter, field: FieldCodec, map: Message): void {
  const key = field.keyCodec as ValueCodec;
  for (const name in map) {
    const value = map[name];
    if (value === undefined) continue;
    writer.uint32(field.tag);
    writer.nested(() => {
      writer.uint32((1 << 3) | key.wire);
      key.write(writer, key.wire === wireType.bytes ? name : keyFromText(field, name));
      writer.uint32((2 << 3) | field.value.wire);
      field.value.write(writer, value);
    });
  }
}

function keyFromText(field: FieldCodec, text: string): unknown {
  return field.key?.endsWith('64') ? BigInt(text) : field.key === 'bool' ? text === 'true' : Number(text);
}

function readField(reader: WireReader, wire: number, field: FieldCodec, message: Message): void {
  if (field.label === 'map') readMapEntry(reader, field, message[field.name] as Message);
  else if (field.label === 'repeated') readRepeated(reader, wire, field, message[field.name] as unknown[]);
  else if (wire === field.value.wire) message[field.name] = field.value.read(reader);
  // A field of another wire type is unknown to us: skip it as any unknown field.
  else reader.skip(wire);
}

function readRepeated(reader: WireReader, wire: number, field: FieldCodec, values: unknown[]): void {
  if (wire === field.value.wire) values.push(field.value.read(reader));
  else if (wire === wireType.bytes && field.value.packable) {
    reader.nested(() => {
      while (!reader.done) values.push(field.value.read(reader));
    });
  } else reader.skip(wire);
}

function readMapEntry(reader: WireReader, field: FieldCodec, map: Message): void {
  const keyCodec = field.keyCodec as ValueCodec;
  reader.nested(() => {
    let key: unknown = keyCodec.initial;
    let value: unknown = field.value.initial;
    while (!reader.done) {
      const tag = reader.uint32();
      if (tag === ((1 << 3) | keyCodec.wire)) key = keyCodec.read(reader);
      else if (tag === ((2 << 3) | field.value.wire)) value = field.value.read(reader);
      else reader.skip(tag & 7);
    }
    // Own property always: a key such as __proto__ from the other side must stay data.
    Object.defineProperty(map, String(key), {
      value: value ?? field.value.normalize({}),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  });
}

function valueCodec(schema: Schema, type: string): ValueCodec {
  const scalar = scalars[type];
  if (scalar !== undefined) return scalar;
  const values = schema.enumValues(type);
  return values === undefined ? messageCodec(schema, type) : enumCodec(type, values);
}

/** The messages' codecs are looked up late: types refer to each other, and to themselves. */
function messageCodec(schema: Schema, type: string): ValueCodec {
  return {
    wire: wireType.bytes,
    packable: false,
    initial: undefined,
    isDefault: () => false,
    write: (writer, value) => writer.nested(() => schema.codec(type).write(writer, value as Message)),
    read: (reader) => reader.nested(() => schema.codec(type).read(reader)),
    normalize: (value) => schema.codec(type).create(value as Message),
  };
}

function enumCodec(type: string, byName: ReadonlyMap<string, number>): ValueCodec {
  const byNumber = new Map<number, string>();
  for (const [name, number] of byName) if (!byNumber.has(number)) byNumber.set(number, name);
  return {
    wire: wireType.varint,
    packable: true,
    initial: byNumber.get(0),
    isDefault: (value) => byName.get(value as string) === 0,
    write(writer, value) {
      const number = byName.get(value as string);
      if (number === undefined) throw new KubelingError('BUG', `${type} has no value ${String(value)}`);
      writer.int32(number);
    },
    // A newer peer may know more values than we do.
    read: (reader) => byNumber.get(reader.int32()) ?? 'UNRECOGNIZED',
    normalize: (value) => value,
  };
}

function scalar(
  wire: number,
  initial: unknown,
  write: (writer: WireWriter, value: never) => void,
  read: (reader: WireReader) => unknown,
): ValueCodec {
  return {
    wire,
    initial,
    packable: wire !== wireType.bytes,
    write: write as ValueCodec['write'],
    read,
    isDefault: wire === wireType.bytes ? isEmpty : (value) => value === initial,
    normalize: (value) => value,
  };
}

function isEmpty(value: unknown): boolean {
  return (value as string | Uint8Array).length === 0;
}

const noBytes = Buffer.alloc(0);

const scalars: Readonly<Record<string, ValueCodec | undefined>> = {
  string: scalar(
    wireType.bytes,
    '',
    (w, v: string) => w.string(v),
    (r) => r.string(),
  ),
  bytes: scalar(
    wireType.bytes,
    noBytes,
    (w, v: Uint8Array) => w.bytes(v),
    (r) => r.bytes(),
  ),
  bool: scalar(
    wireType.varint,
    false,
    (w, v: boolean) => w.uint32(v ? 1 : 0),
    (r) => r.uint64() !== 0n,
  ),
  int32: scalar(
    wireType.varint,
    0,
    (w, v: number) => w.int32(v),
    (r) => r.int32(),
  ),
  uint32: scalar(
    wireType.varint,
    0,
    (w, v: number) => w.uint32(v),
    (r) => r.uint32(),
  ),
  int64: scalar(
    wireType.varint,
    0n,
    (w, v: bigint) => w.uint64(v),
    (r) => r.int64(),
  ),
  uint64: scalar(
    wireType.varint,
    0n,
    (w, v: bigint) => w.uint64(v),
    (r) => r.uint64(),
  ),
  double: scalar(
    wireType.fixed64,
    0,
    (w, v: number) => w.double(v),
    (r) => r.double(),
  ),
  float: scalar(
    wireType.fixed32,
    0,
    (w, v: number) => w.float(v),
    (r) => r.float(),
  ),
};

function inContext(message: string, field: FieldCodec, write: () => void): void {
  try {
    write();
  } catch (cause) {
    if (cause instanceof KubelingError && cause.code === 'BUG') throw cause;
    throw new KubelingError('BUG', `Cannot encode ${message}.${field.name}: ${String(cause)}`, { cause });
  }
}
