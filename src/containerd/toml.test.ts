import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { toToml } from './toml.ts';

describe('toToml', () => {
  it('writes values before tables, and quotes keys where needed', () => {
    const text = toToml({
      version: 2,
      table: { 'io.containerd.grpc.v1.cri': { on: true, list: ['a', 'b"c'] }, empty: {} },
      root: '/a b',
      gone: undefined,
    });
    assert.equal(
      text,
      `version = 2
root = "/a b"

[table."io.containerd.grpc.v1.cri"]
on = true
list = ["a", "b\\"c"]

[table.empty]
`,
    );
  });

  it('writes a list of tables with double brackets, and an empty list as a value', () => {
    assert.equal(
      toToml({ plugin: { unpack: [{ a: 1 }, { a: 2, b: { c: 3 } }], none: [] } }),
      `
[plugin]
none = []

[[plugin.unpack]]
a = 1

[[plugin.unpack]]
a = 2

[plugin.unpack.b]
c = 3
`,
    );
  });

  it('rejects numbers that TOML cannot represent exactly', () => {
    assert.throws(() => toToml({ a: { b: 0.5 } }), {
      code: 'CONTAINERD_CONFIG',
      message: /a\.b as it must be a whole number: current value is 0\.5/,
    });
  });
});

const written = (text: string) => toToml({ text }).replace(/^text = |\n$/g, '');

describe('toToml: strings', () => {
  it('escapes characters that are invalid in a string', () => {
    assert.equal(
      written('a"\\\b\t\n\f\r\u0000\u001f\u007fä'),
      '"a\\"\\\\\\b\\t\\n\\f\\r\\u0000\\u001f\\u007fä"',
    );
  });

  it('writes any string so that JSON.parse of the TOML string returns the same string', () => {
    // All TOML escapes in use have the same meaning in JSON.
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const value = written(text);
        assert.equal(JSON.parse(value), text);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: none of these may be left
        assert.doesNotMatch(value, /[\u0000-\u001f\u007f]/);
      }),
    );
  });

  it('rejects an unpaired surrogate', () => {
    assert.throws(() => toToml({ text: '\ud800' }), { code: 'CONTAINERD_CONFIG' });
  });
});
