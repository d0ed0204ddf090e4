import type { KindTable, WireField } from '../../src/kinds/index.ts';
import { pick, type Random, randomInt } from '../../src/lib/index.ts';
import { WireWriter } from '../../src/protocols/protobuf/wire.ts';

type Plain = Readonly<Record<string, unknown>>;

/** Builds an object of a kind with random valid fields. */
export function anyObject(table: KindTable, kind: string, random: Random, depth = 0): Plain {
  const fields = [...table.wireOf(kind).values()].filter(() => depth === 0 || randomInt(random, 3) > 0);
  const entries = fields.flatMap((field): [string, unknown][] => {
    if (field.place === 'inlined') return Object.entries(anyObject(table, field.type, random, depth + 1));
    if (depth > 6) return [];
    const one = () => anyValue(table, field.type, random, depth);
    if (field.shape === 'single') return [[field.name, one()]];
    if (field.shape === 'list') return [[field.name, [one(), one()]]];
    return [[field.name, { a: one(), 'b.c/d': one() }]];
  });
  return Object.fromEntries(entries);
}

function anyValue(table: KindTable, type: string, random: Random, depth: number): unknown {
  switch (type) {
    case 'string':
      return pick(random, ['x', 'grüße', 'a b']);
    case 'bool':
      return true;
    case 'int32':
    case 'int64':
      return randomInt(random, 2) === 0 ? 1 + randomInt(random, 1000) : -1 - randomInt(random, 1000);
    case 'Quantity':
      return pick(random, ['500m', '1Gi', '2']);
    case 'IntOrString':
      return pick<string | number>(random, ['http', 80]);
    case 'Time':
      return '2026-01-31T12:00:01Z';
    case 'MicroTime':
      return '2026-01-31T12:00:01.000250Z';
    case 'bytes':
      return Buffer.from(`bytes ${randomInt(random, 100)}`).toString('base64');
    case 'FieldsV1':
      return {};
    case 'ExtraValue':
      return ['x', 'y'];
    default:
      return anyObject(table, type, random, depth + 1);
  }
}

/** Encodes the object in protobuf with the field numbers of the table. */
export function encodeObject(table: KindTable, kind: string, object: Plain): Buffer {
  const writer = new WireWriter();
  writeMessage(writer, table, kind, object);
  return Buffer.from(writer.finish());
}

function writeMessage(writer: WireWriter, table: KindTable, kind: string, object: Plain): void {
  for (const [number, field] of table.wireOf(kind)) {
    const value = field.place === 'inlined' ? object : object[field.name];
    if (value !== undefined) writeField(writer, table, number, field, value);
  }
}

function writeField(
  writer: WireWriter,
  table: KindTable,
  number: number,
  field: WireField,
  value: unknown,
): void {
  if (field.shape === 'list')
    for (const item of value as unknown[]) writeValue(writer, table, number, field.type, item);
  else if (field.shape === 'map')
    for (const [key, inner] of Object.entries(value as Plain))
      nested(writer, number, () => {
        writeValue(writer, table, 1, 'string', key);
        writeValue(writer, table, 2, field.type, inner);
      });
  else writeValue(writer, table, number, field.type, value);
}

function writeValue(
  writer: WireWriter,
  table: KindTable,
  number: number,
  type: string,
  value: unknown,
): void {
  const isVarint = type === 'bool' || type === 'int32' || type === 'int64';
  if (isVarint) {
    writer.uint32(number << 3);
    writer.uint64(BigInt(value as number));
    return;
  }
  if (type !== 'string' && type !== 'bytes') {
    nested(writer, number, () => writePart(writer, table, type, value));
    return;
  }
  writer.uint32((number << 3) | 2);
  if (type === 'string') writer.string(String(value));
  else writer.bytes(Buffer.from(String(value), 'base64'));
}

function writePart(writer: WireWriter, table: KindTable, type: string, value: unknown): void {
  const part = (number: number, of: string, inner: unknown) => writeValue(writer, table, number, of, inner);
  if (type === 'Quantity') part(1, 'string', value);
  else if (type === 'IntOrString') {
    part(1, 'int32', typeof value === 'number' ? 0 : 1);
    part(typeof value === 'number' ? 2 : 3, typeof value === 'number' ? 'int32' : 'string', value);
  } else if (type === 'Time' || type === 'MicroTime') {
    const ms = Date.parse(String(value));
    part(1, 'int64', Math.floor(ms / 1000));
    part(2, 'int32', type === 'Time' ? 0 : 250_000);
  } else if (type === 'ExtraValue') for (const item of value as string[]) part(1, 'string', item);
  else if (type !== 'FieldsV1') writeMessage(writer, table, type, value as Plain);
}

function nested(writer: WireWriter, number: number, write: () => void): void {
  writer.uint32((number << 3) | 2);
  const start = writer.begin();
  write();
  writer.end(start);
}
