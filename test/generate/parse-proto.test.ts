import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ProtoField, parseProto } from '../../scripts/parse-proto.mjs';

function fieldsOf(text: string, message = 'M'): readonly ProtoField[] {
  const { messages } = parseProto('a.proto', text);
  return messages.find(({ name }) => name === message)?.fields ?? assert.fail(`no ${message}`);
}

test('parses single, repeated, optional, map and oneof fields of a message', () => {
  const text = `message M {
    string a = 1;
    repeated int32 b = 2;
    optional bool c = 3;
    map<string, Other> d = 4;
    oneof choice { string e = 5; Other f = 6; }
  }`;
  assert.deepEqual(
    fieldsOf(text).map(({ name, number, label, type, key }) => [name, number, label, type, key]),
    [
      ['a', 1, 'single', 'string', undefined],
      ['b', 2, 'repeated', 'int32', undefined],
      ['c', 3, 'optional', 'bool', undefined],
      ['d', 4, 'map', 'Other', 'string'],
      ['e', 5, 'optional', 'string', undefined],
      ['f', 6, 'optional', 'Other', undefined],
    ],
  );
});

test('ignores comments, options, reserved numbers and strings that resemble comments', () => {
  const text = `
    syntax = "proto3"; // a comment; with } and {
    import "http://example/other.proto";
    option go_package = "x//y";
    /* message Hidden { string a = 1; } */
    message M {
      option deprecated = true;
      reserved 2, 4 to 6;
      reserved "old";
      string a = 1 [deprecated = true, json_name = "say \\"a\\""];
      ;
    }`;
  const file = parseProto('a.proto', text);
  assert.deepEqual(
    file.messages.map(({ name }) => name),
    ['M'],
  );
  assert.deepEqual(
    fieldsOf(text).map(({ name }) => name),
    ['a'],
  );
});

test('names nested types after the types that contain them', () => {
  const file = parseProto(
    'a.proto',
    `package p.v1;
     message Kind { string x = 1; }
     message Outer {
       enum Kind { A = 0; }
       message Inner { Kind kind = 1; message Deep { Inner back = 1; } }
       Kind kind = 1;
       Inner.Deep deep = 2;
       p.v1.Outer again = 3;
       google.protobuf.Timestamp at = 4;
     }
     message Beside { Kind kind = 1; Outer.Kind other = 2; }`,
  );
  const types = Object.fromEntries(
    file.messages.map(({ name, fields }) => [name, fields.map(({ type }) => type).join(' ')]),
  );
  assert.deepEqual(types, {
    Kind: 'string',
    Outer: 'OuterKind OuterInnerDeep Outer Timestamp',
    OuterInner: 'OuterKind',
    OuterInnerDeep: 'OuterInner',
    Beside: 'Kind OuterKind',
  });
  assert.deepEqual(
    file.enums.map(({ name }) => name),
    ['OuterKind'],
  );
});

test('parses negative and hexadecimal values of enums', () => {
  const file = parseProto('a.proto', 'enum E { option allow_alias = true; A = 0; B = -1; C = 0x10; D = 0; }');
  assert.deepEqual(
    file.enums[0]?.values.map(({ number }) => number),
    [0, -1, 16, 0],
  );
});

test('parses all methods of a service, with and without options', () => {
  const file = parseProto(
    'a.proto',
    `package p;
     service S {
       option deprecated = true;
       rpc One(A) returns (B) { option idempotency_level = NO_SIDE_EFFECTS; }
       rpc Two(A) returns (stream B) {}
       rpc Three(A) returns (B);
     }`,
  );
  assert.equal(file.services[0]?.fullName, 'p.S');
  assert.deepEqual(
    file.services[0]?.methods.map(({ name, request, response, serverStreaming }) =>
      [name, request, response, serverStreaming].join(' '),
    ),
    ['One A B false', 'Two A B true', 'Three A B false'],
  );
});

const wrong: readonly (readonly [string, string, RegExp])[] = [
  ['a stream of requests', 'service S { rpc A(stream B) returns (C); }', /no stream of requests/],
  [
    'two fields of one number',
    'message M { string a = 1; string b = 1; }',
    /M uses the name or number 1 for both a and b/,
  ],
  [
    'two fields of one name',
    'message M { string a = 1; string a = 2; }',
    /M uses the name or number a for both a and a/,
  ],
  ['field number 0', 'message M { string a = 0; }', /M\.a cannot have the number 0/],
  ['a field without a number', 'message M { string a; }', /expected "="/],
  ['a number that is none', 'message M { string a = x; }', /expected a whole number/],
  ['an enum that does not begin at 0', 'enum E { A = 1; }', /first value of E to be 0/],
  ['a message that does not end', 'message M { string a = 1;', /expected more text/],
  ['a definition we do not know', 'extend Foo { string a = 1; }', /a definition instead of "extend"/],
  ['something else in a service', 'service S { message A {} }', /a method instead of "message"/],
];

for (const [what, text, message] of wrong) {
  test(`rejects ${what} with the name of the file`, () => {
    assert.throws(() => parseProto('some/file.proto', text), message);
    assert.throws(() => parseProto('some/file.proto', text), /^Error: some\/file\.proto: /);
  });
}
