// Encodes messages of every wire definition with random content; kubeling and protobufjs must
// decode them identically, whichever of the two encoded them. protobufjs parses the .proto files
// itself, so this also verifies kubeling's parser and generated tables.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ProtoField } from '../../scripts/parse-proto.d.mts';
import * as containerd from '../../src/cri/gen/containerd.ts';
import * as runtime from '../../src/cri/gen/runtime.ts';
import type { MessageType } from '../../src/protocols/protobuf/index.ts';
import { loadWithProtoLoader, parseOwn, protoLoaderMessage } from './wire-definitions.ts';

type Content = Record<string, unknown>;

const foreign = loadWithProtoLoader();

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ minLength: 120, maxLength: 300 }),
);
const mapKey = fc.string({ unit: 'binary', maxLength: 20 }).filter((key) => key !== '__proto__');
const bigNumber = (min: bigint, max: bigint) =>
  fc.oneof(fc.bigInt(min, max), fc.constantFrom(0n, 1n, min, max));

const scalars: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: text,
  bytes: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  bool: fc.boolean(),
  int32: fc.oneof(fc.integer(), fc.constantFrom(0, -1, 2 ** 31 - 1, -(2 ** 31))),
  uint32: fc.oneof(fc.nat(2 ** 31 - 1), fc.constantFrom(0, 1, 2 ** 32 - 1)),
  int64: bigNumber(-(2n ** 63n), 2n ** 63n - 1n),
  uint64: bigNumber(0n, 2n ** 64n - 1n),
  double: fc.double(),
  float: fc.float(),
};

const wellKnown: Readonly<Record<string, fc.Arbitrary<Content>>> = {
  Timestamp: fc.record({ seconds: scalars['int64'] as fc.Arbitrary<unknown>, nanos: fc.nat(999_999_999) }),
  Any: fc.record({ typeUrl: text, value: scalars['bytes'] as fc.Arbitrary<unknown> }),
};

interface Definitions extends ReturnType<typeof parseOwn> {
  readonly types: Readonly<Record<string, unknown>>;
}

function contentOf(definitions: Definitions, name: string): fc.Arbitrary<Content> {
  const message = definitions.messages.get(name);
  if (message === undefined) return wellKnown[name] ?? assert.fail(`no message ${name}`);
  const fields = message.fields.map(
    (field) => [camel(field.name), fieldContent(definitions, field)] as const,
  );
  return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
}

function fieldContent(definitions: Definitions, field: ProtoField): fc.Arbitrary<unknown> {
  const one = valueContent(definitions, field.type);
  if (field.label === 'repeated') return fc.array(one, { maxLength: 3 });
  return field.label === 'map' ? fc.dictionary(mapKey, one, { maxKeys: 3 }) : one;
}

function valueContent(definitions: Definitions, type: string): fc.Arbitrary<unknown> {
  const names = definitions.enums.get(type)?.values.map(({ name }) => name);
  return scalars[type] ?? (names === undefined ? contentOf(definitions, type) : fc.constantFrom(...names));
}

/**
 * Converts a field name to the protobuf JSON convention; written independently of the code
 * generator that it verifies.
 */
function camel(name: string): string {
  const [first = '', ...rest] = name.split('_');
  return first + rest.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('');
}

/**
 * Field names that protobufjs spells differently: its built-in Any type uses type_url, as in the
 * .proto file.
 */
const foreignNames: Readonly<Record<string, string>> = { typeUrl: 'type_url' };
const ownNames: Readonly<Record<string, string>> = { type_url: 'typeUrl' };

/**
 * Converts content decoded by either implementation to a common form: 64-bit integers as text,
 * unset fields omitted.
 */
function comparable(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined && item !== null);
  return Object.fromEntries(entries.map(([key, item]) => [ownNames[key] ?? key, comparable(item)]));
}

/** Converts content to the input format of protobufjs: 64-bit integers as text. */
function forForeign(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(forForeign);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [foreignNames[key] ?? key, forForeign(item)]),
  );
}

function compare(definitions: Definitions, fullName: string, name: string): void {
  const ours = definitions.types[name] as MessageType<Content>;
  const theirs = protoLoaderMessage(foreign, fullName);
  fc.assert(
    fc.property(contentOf(definitions, name), (content) => {
      const expected = comparable(ours.create(content));
      const bytes = ours.encode(content);
      assert.deepEqual(
        comparable(theirs.deserialize(bytes)),
        expected,
        "protobufjs decodes kubeling's message",
      );
      const foreignBytes = theirs.serialize(forForeign(content) as object);
      assert.deepEqual(
        comparable(ours.decode(foreignBytes)),
        expected,
        'kubeling decodes the protobufjs message',
      );
      assert.deepEqual(comparable(ours.decode(bytes)), expected, 'kubeling decodes its own message');
    }),
    { numRuns: 25 },
  );
}

for (const [what, matching, types] of [
  ['CRI', /^[^/]+\.proto$/, runtime],
  ['containerd', /^containerd\//, containerd],
] as const) {
  const definitions: Definitions = { ...parseOwn(matching), types };
  describe(`${what}: every message decodes identically in protobufjs`, () => {
    for (const file of definitions.files) {
      for (const { name } of file.messages) {
        // protobufjs would qualify the names of nested messages; this is not needed, because CRI
        // nests only enums.
        test(name, () => compare(definitions, `${file.package}.${name}`, name));
      }
    }
  });
}

test('covers every message of the protobuf definitions', () => {
  const { messages } = parseOwn(/^[^/]+\.proto$/);
  assert.ok(messages.size > 150, String(messages.size));
  for (const name of messages.keys()) assert.ok(name in runtime, name);
});

test('skips unknown protobuf fields that a newer runtime sends', () => {
  const theirs = protoLoaderMessage(foreign, 'runtime.v1.ContainerStatus');
  const bytes = theirs.serialize({ id: 'a', createdAt: '5', labels: { x: 'y' }, state: 'CONTAINER_EXITED' });
  assert.deepEqual(runtime.ImageSpec.decode(bytes).image, 'a');
  assert.deepEqual(runtime.Int64Value.decode(bytes).value, 0n);
});
