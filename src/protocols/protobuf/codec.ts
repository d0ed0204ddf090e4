import { KubelingError } from '../../lib/index.ts';
import type { FieldDescription } from './schema.ts';
import type { Message, ValueCodec } from './values.ts';
import { WireReader, WireWriter, wireType } from './wire.ts';

export interface Codec {
  encode(message: Message): Buffer;
  decode(bytes: Uint8Array): Message;
  create(init: Message): Message;
  /** Encodes a nested message. */
  write(writer: WireWriter, message: Message): void;
  /**
   * Decodes a message up to the end of the reader's current nested part, and merges it into an
   * earlier occurrence of the same field.
   */
  read(reader: WireReader, into?: Message): Message;
}

/** Encodes and decodes one field of a message, whatever its label and type. */
interface FieldCodec {
  readonly name: string;
  readonly number: number;
  /** The value of an unset field; undefined for fields whose presence is tracked. */
  initial(): unknown;
  write(writer: WireWriter, value: unknown): void;
  /**
   * Decodes one occurrence of the field; returns its value, which may include that of earlier
   * occurrences.
   */
  read(reader: WireReader, wire: number, before: unknown): unknown;
  normalize(value: unknown): unknown;
}

export function compileCodec(
  name: string,
  descriptions: readonly FieldDescription[],
  valueCodec: (type: string) => ValueCodec,
): Codec {
  const fields = descriptions.map((description) => compileField(description, valueCodec));
  const empty = emptyMessages(fields);
  const read = messageReader(fields, empty);
  const write = (writer: WireWriter, message: Message): void => {
    let at = '';
    try {
      for (const field of fields) {
        at = field.name;
        const value = message[at];
        if (value !== undefined) field.write(writer, value);
      }
    } catch (cause) {
      if (cause instanceof KubelingError) throw cause;
      throw new KubelingError('BUG', `Cannot encode ${name}.${at}: ${String(cause)}`, { cause });
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
        if (value !== undefined) message[field.name] = field.normalize(value);
      }
      return message;
    },
  };
}

/**
 * Creates messages with default values. Copying a template is the fastest way to create an object
 * with many fields.
 */
function emptyMessages(fields: readonly FieldCodec[]): () => Message {
  const template: Message = Object.fromEntries(fields.map((field) => [field.name, field.initial()]));
  const fresh = fields.filter((field) => Object(template[field.name]) === template[field.name]);
  return () => {
    const message = { ...template };
    for (const field of fresh) message[field.name] = field.initial();
    return message;
  };
}

function messageReader(fields: readonly FieldCodec[], empty: () => Message): Codec['read'] {
  const byNumber: (FieldCodec | undefined)[] = [];
  for (const field of fields) byNumber[field.number] = field;
  return (reader, into = empty()) => {
    while (!reader.done) {
      const tag = reader.tag();
      const field = byNumber[tag >>> 3];
      if (field === undefined) reader.skip(tag & 7);
      else into[field.name] = field.read(reader, tag & 7, into[field.name]);
    }
    return into;
  };
}

function compileField(field: FieldDescription, valueCodec: (type: string) => ValueCodec): FieldCodec {
  const value = valueCodec(field.type);
  if (field.label === 'repeated') return repeatedField(field, value);
  if (field.key !== undefined) return mapField(field, valueCodec(field.key), value);
  return singleField(field, value);
}

function singleField({ name, number, label }: FieldDescription, value: ValueCodec): FieldCodec {
  const tag = (number << 3) | value.wire;
  const showsAbsence = label === 'optional';
  return {
    name,
    number,
    initial: () => (showsAbsence ? undefined : value.initial),
    write(writer, it) {
      if (!showsAbsence && value.isDefault(it)) return;
      writer.uint32(tag);
      value.write(writer, it);
    },
    // A field with another wire type than defined is treated as unknown.
    read(reader, wire, before) {
      if (wire === value.wire) return value.read(reader, before);
      reader.skip(wire);
      return before;
    },
    normalize: value.normalize,
  };
}

/** Lists of numbers are encoded packed into one field; packed and separate values are decoded. */
function repeatedField({ name, number }: FieldDescription, value: ValueCodec): FieldCodec {
  const tag = (number << 3) | (value.packable ? wireType.bytes : value.wire);
  return {
    name,
    number,
    initial: () => [],
    write(writer, items) {
      if (value.packable) writePacked(writer, tag, value, items as readonly unknown[]);
      else {
        for (const item of items as readonly unknown[]) {
          writer.uint32(tag);
          value.write(writer, item);
        }
      }
    },
    read(reader, wire, items) {
      if (wire === value.wire) (items as unknown[]).push(value.read(reader, undefined));
      else if (wire === wireType.bytes && value.packable) readPacked(reader, value, items as unknown[]);
      else reader.skip(wire);
      return items;
    },
    normalize: (items) => (items as readonly unknown[]).map(value.normalize),
  };
}

function writePacked(writer: WireWriter, tag: number, value: ValueCodec, items: readonly unknown[]): void {
  if (items.length === 0) return;
  writer.uint32(tag);
  const start = writer.begin();
  for (const item of items) value.write(writer, item);
  writer.end(start);
}

function readPacked(reader: WireReader, value: ValueCodec, items: unknown[]): void {
  const outer = reader.enter();
  while (!reader.done) {
    reader.count();
    items.push(value.read(reader, undefined));
  }
  reader.leave(outer);
}

/** On the wire each map entry is a message: the key is field 1, the value field 2. */
function mapField({ name, number }: FieldDescription, key: ValueCodec, value: ValueCodec): FieldCodec {
  const tag = (number << 3) | wireType.bytes;
  const keyTag = (1 << 3) | key.wire;
  const valueTag = (2 << 3) | value.wire;
  return {
    name,
    number,
    initial: () => ({}),
    write(writer, map) {
      for (const text of Object.keys(map as Message)) {
        const item = (map as Message)[text];
        if (item === undefined) continue;
        writer.uint32(tag);
        const start = writer.begin();
        writer.uint32(keyTag);
        key.write(writer, key.fromText(text));
        writer.uint32(valueTag);
        value.write(writer, item);
        writer.end(start);
      }
    },
    read(reader, wire, map) {
      if (wire !== wireType.bytes) {
        reader.skip(wire);
        return map;
      }
      const outer = reader.enter();
      let [text, item] = [key.initial, value.initial];
      while (!reader.done) {
        const entryTag = reader.tag();
        if (entryTag === keyTag) text = key.read(reader, undefined);
        else if (entryTag === valueTag) item = value.read(reader, item);
        else reader.skip(entryTag & 7);
      }
      reader.leave(outer);
      put(map as Message, String(text), item ?? value.normalize({}));
      return map;
    },
    normalize(map) {
      const copy: Message = {};
      for (const text of Object.keys(map as Message)) {
        const item = (map as Message)[text];
        if (item !== undefined) put(copy, text, value.normalize(item));
      }
      return copy;
    },
  };
}

/** A received map key is data, even if its name is __proto__. */
function put(map: Message, key: string, value: unknown): void {
  if (key !== '__proto__') map[key] = value;
  else {
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
  }
}
