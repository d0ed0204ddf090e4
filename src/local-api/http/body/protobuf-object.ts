import { mostValues } from '../../../api/index.ts';
import type { KindTable, WireField } from '../../../kinds/index.ts';
import { apiTime, KubelingError } from '../../../lib/index.ts';
import { WireReader, wireType } from '../../../protocols/protobuf/index.ts';
import { nullableFields } from './zero-values.ts';

type Fields = Map<string, unknown>;

/** Decodes protobuf objects into their JSON form, using the generated table of API kinds. */
export class ProtobufReader {
  readonly #table: KindTable;
  readonly #nullable = nullableFields();
  #values = 0;

  constructor(table: KindTable) {
    this.#table = table;
  }

  /**
   * Decodes a message; `kind` is a name in the generated table of API kinds. Throws
   * PROTOBUF_MALFORMED for invalid input.
   */
  read(kind: string, bytes: Uint8Array): Readonly<Record<string, unknown>> {
    const fields: Fields = new Map();
    this.#values = 0;
    this.#message(new WireReader(bytes), kind, fields);
    return plain(fields);
  }

  #message(reader: WireReader, kind: string, into: Fields): void {
    const wire = this.#table.wireOf(kind);
    const keeps = this.#nullable.get(kind);
    while (!reader.done) {
      const tag = reader.tag();
      const field = wire.get(tag >>> 3);
      // Unknown fields are skipped, because a newer client may send them.
      if (field === undefined) reader.skip(tag & 7);
      else this.#field(reader, tag & 7, field, { into, keeps: keeps?.has(field.name) ? 'all' : 'set' });
    }
  }

  #field(
    reader: WireReader,
    type: number,
    field: WireField,
    { into, keeps }: { readonly into: Fields; readonly keeps: 'all' | 'set' },
  ): void {
    if (field.place === 'inlined') {
      within(reader, type, () => this.#message(reader, field.type, into));
    } else if (field.shape === 'map') {
      const map = (into.get(field.name) ?? new Map()) as Fields;
      into.set(field.name, map);
      within(reader, type, () => this.#entry(reader, field.type, map));
    } else if (field.shape === 'list') {
      const list = (into.get(field.name) ?? []) as unknown[];
      into.set(field.name, list);
      this.#items(reader, type, field.type, list);
    } else {
      const value = this.#value(reader, type, field.type);
      if (value !== undefined && (keeps === 'all' || !isUnset(value))) into.set(field.name, value);
    }
  }

  /** Appends a value to a list; numbers of a list may be packed in one field. */
  #items(reader: WireReader, type: number, of: string, list: unknown[]): void {
    if (isVarint(of) && type === wireType.bytes)
      within(reader, type, () => {
        while (!reader.done) list.push(this.#value(reader, wireType.varint, of));
      });
    else list.push(this.#value(reader, type, of) ?? null);
  }

  #entry(reader: WireReader, of: string, map: Fields): void {
    if (++this.#values > mostValues) throw malformed(`it has more than ${mostValues} values`);
    let key = '';
    let value: unknown;
    while (!reader.done) {
      const tag = reader.tag();
      if (tag >>> 3 === 1) key = text(reader, tag & 7);
      else if (tag >>> 3 === 2) value = this.#value(reader, tag & 7, of);
      else reader.skip(tag & 7);
    }
    map.set(key, value ?? null);
  }

  #value(reader: WireReader, type: number, of: string): unknown {
    if (++this.#values > mostValues) throw malformed(`it has more than ${mostValues} values`);
    switch (of) {
      case 'string':
        return text(reader, type);
      case 'bool':
        return varint(reader, type) !== 0;
      case 'int32':
      case 'int64':
        return varint(reader, type);
      case 'bytes':
        expect(type, wireType.bytes);
        return reader.bytes().toString('base64');
      default:
        return within(reader, type, () => this.#part(reader, of));
    }
  }

  #part(reader: WireReader, of: string): unknown {
    switch (of) {
      case 'Quantity':
        return parts(reader).get(1) ?? '0';
      case 'IntOrString':
        return intOrString(parts(reader));
      case 'Time':
      case 'MicroTime':
        return time(parts(reader), of);
      case 'FieldsV1':
        return {};
      case 'ExtraValue':
        return strings(reader);
    }
    const fields: Fields = new Map();
    this.#message(reader, of, fields);
    return plain(fields);
  }
}

/**
 * Converts the collected fields to objects; maps were collected as Map because their keys are
 * arbitrary.
 */
function plain(fields: Fields): Readonly<Record<string, unknown>> {
  const entries = [...fields].map(([name, value]) => [
    name,
    value instanceof Map ? Object.fromEntries(value) : value,
  ]);
  return Object.fromEntries(entries);
}

function isVarint(type: string): boolean {
  return type === 'bool' || type === 'int32' || type === 'int64';
}

/** Whether JSON omits the value because it is zero. */
function isUnset(value: unknown): boolean {
  return value === '' || value === 0 || value === false;
}

function within<T>(reader: WireReader, type: number, read: () => T): T {
  expect(type, wireType.bytes);
  const outer = reader.enter();
  const result = read();
  reader.leave(outer);
  return result;
}

function text(reader: WireReader, type: number): string {
  expect(type, wireType.bytes);
  return reader.string();
}

function varint(reader: WireReader, type: number): number {
  expect(type, wireType.varint);
  return Number(reader.int64());
}

function expect(type: number, expected: number): void {
  if (type !== expected) throw malformed(`a field has the wire type ${type} instead of ${expected}`);
}

/**
 * Reads the fields, by number, of a message that becomes a single value in JSON, such as Quantity.
 */
function parts(reader: WireReader): ReadonlyMap<number, string | number> {
  const found = new Map<number, string | number>();
  while (!reader.done) {
    const tag = reader.tag();
    const type = tag & 7;
    if (type === wireType.bytes) found.set(tag >>> 3, reader.string());
    else if (type === wireType.varint) found.set(tag >>> 3, Number(reader.int64()));
    else reader.skip(type);
  }
  return found;
}

function strings(reader: WireReader): readonly string[] {
  const found: string[] = [];
  while (!reader.done) {
    const tag = reader.tag();
    if (tag >>> 3 === 1) found.push(text(reader, tag & 7));
    else reader.skip(tag & 7);
  }
  return found;
}

function intOrString(found: ReadonlyMap<number, string | number>): string | number {
  return (found.get(1) ?? 0) === 0 ? Number(found.get(2) ?? 0) : String(found.get(3) ?? '');
}

/** The latest time that a JavaScript Date can represent. */
const latestMs = 8.64e15;

/**
 * Converts a Time or MicroTime message; undefined for the zero time, which is sent as an empty
 * message.
 */
function time(found: ReadonlyMap<number, string | number>, of: 'Time' | 'MicroTime'): string | undefined {
  const seconds = Number(found.get(1) ?? 0);
  const nanos = Number(found.get(2) ?? 0);
  if (seconds === 0 && nanos === 0) return undefined;
  if (!(Math.abs(seconds * 1000) < latestMs)) throw malformed('a time is out of the range of dates');
  const whole = apiTime(seconds * 1000);
  const micros = String(Math.floor(nanos / 1000))
    .padStart(6, '0')
    .slice(-6);
  return of === 'Time' ? whole : whole.replace('Z', `.${micros}Z`);
}

function malformed(why: string): KubelingError {
  return new KubelingError('PROTOBUF_MALFORMED', `Cannot read a protobuf message: ${why}`);
}

/** The envelope of every Kubernetes object in protobuf (runtime.Unknown). */
export interface ProtobufEnvelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly contentType: string;
  readonly raw: Uint8Array;
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** Reads the envelope; throws PROTOBUF_MALFORMED for invalid input. */
export function readEnvelope(bytes: Buffer): ProtobufEnvelope {
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw new KubelingError(
      'PROTOBUF_MALFORMED',
      'Cannot read a protobuf object: its first bytes must be k8s',
    );
  const envelope = { apiVersion: '', kind: '', contentType: '', raw: Buffer.alloc(0) as Uint8Array };
  const reader = new WireReader(bytes.subarray(magic.length));
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === tagOf(1)) Object.assign(envelope, readType(reader));
    else if (tag === tagOf(2)) envelope.raw = reader.bytes();
    else if (tag === tagOf(4)) envelope.contentType = reader.string();
    else reader.skip(tag & 7);
  }
  return envelope;
}

function readType(reader: WireReader): { apiVersion: string; kind: string } {
  const type = { apiVersion: '', kind: '' };
  const outer = reader.enter();
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === tagOf(1)) type.apiVersion = reader.string();
    else if (tag === tagOf(2)) type.kind = reader.string();
    else reader.skip(tag & 7);
  }
  reader.leave(outer);
  return type;
}

function tagOf(number: number): number {
  return (number << 3) | wireType.bytes;
}
