import { KubelingError } from '../../lib/index.ts';
import { type Codec, compileCodec } from './codec.ts';
import { enumCodec, type Message, scalars, type ValueCodec } from './values.ts';
import { wireType } from './wire.ts';

/** A message as callers may pass it: every field may be missing, also in nested messages. */
export type MessageInit<T> = T extends bigint | Uint8Array | string | number | boolean | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly MessageInit<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]?: MessageInit<T[Key]> | undefined }
      : T;

export interface MessageType<T> {
  readonly name: string;
  encode(message: MessageInit<T>): Buffer;
  decode(bytes: Uint8Array): T;
  /** Returns the message with missing fields set to their defaults. */
  create(init: MessageInit<T>): T;
}

export type FieldLabel = 'single' | 'optional' | 'repeated' | 'map';

export interface FieldDescription {
  readonly number: number;
  readonly name: string;
  readonly label: FieldLabel;
  /**
   * The type of the field: a scalar, or the name of a message or enum of the same schema; for maps
   * the type of the values.
   */
  readonly type: string;
  /** The type of a map's keys. */
  readonly key: string | undefined;
}

/**
 * The wire definitions of one protobuf protocol as a table. Messages are compiled on first use: a
 * kubelet uses only a part of CRI, and generated code for all of it needs more than ten megabytes.
 */
export class Schema {
  readonly #messages = new Map<string, string>();
  readonly #enums = new Map<string, ReadonlyMap<string, number>>();
  readonly #codecs = new Map<string, Codec>();

  /**
   * The definitions as text, one per line: `message Name|1 id string|2 labels map string string|3
   * ids repeated string` or `enum Name|A 0|B 1`.
   */
  constructor(text: string) {
    for (const line of text.split('\n')) this.#define(line.trim());
  }

  message<T>(name: string): MessageType<T> {
    return {
      name,
      encode: (message) => this.#codec(name).encode(message as Message),
      decode: (bytes) => this.#codec(name).decode(bytes) as T,
      create: (init) => this.#codec(name).create(init as Message) as T,
    };
  }

  #codec(name: string): Codec {
    const known = this.#codecs.get(name);
    if (known !== undefined) return known;
    const definition = this.#messages.get(name);
    if (definition === undefined) {
      throw new KubelingError('BUG', `There is no message ${name} in this schema`);
    }
    const fields = definition === '' ? [] : definition.split('|').map(parseField);
    const codec = compileCodec(name, fields, (type) => this.#value(type));
    this.#codecs.set(name, codec);
    return codec;
  }

  #value(type: string): ValueCodec {
    const scalar = scalars[type];
    if (scalar !== undefined) return scalar;
    const values = this.#enums.get(type);
    return values === undefined ? this.#nested(type) : enumCodec(type, values);
  }

  /**
   * The codec of a nested message. It is resolved on first use, because types may refer to each
   * other and to themselves.
   */
  #nested(type: string): ValueCodec {
    let known: Codec | undefined;
    const codec = () => {
      known ??= this.#codec(type);
      return known;
    };
    return {
      wire: wireType.bytes,
      packable: false,
      initial: undefined,
      isDefault: () => false,
      write: (writer, value) => {
        const start = writer.begin();
        codec().write(writer, value as Message);
        writer.end(start);
      },
      read: (reader, before) => {
        const outer = reader.enter();
        const message = codec().read(reader, before as Message | undefined);
        reader.leave(outer);
        return message;
      },
      normalize: (value) => codec().create(value as Message),
      fromText: (text) => text,
    };
  }

  #define(line: string): void {
    if (line === '') return;
    const bar = line.indexOf('|');
    const [kind, name = ''] = line.slice(0, bar < 0 ? undefined : bar).split(' ');
    const rest = bar < 0 ? '' : line.slice(bar + 1);
    if (kind === 'message') this.#messages.set(name, rest);
    else this.#enums.set(name, new Map(rest.split('|').map(parseEnumValue)));
  }
}

function parseEnumValue(text: string): [string, number] {
  const [name = '', number = '0'] = text.split(' ');
  return [name, Number(number)];
}

function parseField(text: string): FieldDescription {
  const [number = '0', name = '', ...type] = text.split(' ');
  const [first = '', second = '', third = ''] = type;
  const at = { number: Number(number), name };
  if (first === 'map') return { ...at, label: 'map', key: second, type: third };
  if (first === 'repeated' || first === 'optional')
    return { ...at, label: first, key: undefined, type: second };
  return { ...at, label: 'single', key: undefined, type: first };
}
