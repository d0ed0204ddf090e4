import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  applyPatch,
  type JsonObject,
  PatchSchema,
  strategicDiff,
  withoutEmptyFields,
} from '../../src/api/index.ts';

/**
 * `kubectl patch --local` applies patches with the same library as kube-apiserver, so a patch that
 * kubeling computes must have the same result in kubectl as in kubeling.
 */
const schema = new PatchSchema();
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const runs = 12;

const word = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });
const uniqueBy = <T>(of: fc.Arbitrary<T>, selector: (item: T) => unknown) =>
  optional(fc.uniqueArray(of, { selector, maxLength: 5 }));
const condition = fc.record({ type: word, status: word, reason: optional(word) });
const conditions = uniqueBy(condition, ({ type }) => type);
const metadata = fc.record({
  name: fc.constant('x'),
  labels: optional(fc.dictionary(word, word, { maxKeys: 3 })),
  finalizers: uniqueBy(word, (value) => value),
});

const pod = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Pod'),
  metadata,
  status: fc.record({
    phase: optional(word),
    conditions,
    podIPs: uniqueBy(fc.record({ ip: word }), ({ ip }) => ip),
    containerStatuses: optional(fc.array(fc.record({ name: word, image: word }), { maxLength: 3 })),
  }),
});

const node = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Node'),
  metadata,
  status: fc.record({
    conditions,
    addresses: optional(fc.array(fc.record({ type: word, address: word }), { maxLength: 4 })),
    volumesInUse: optional(fc.array(word, { maxLength: 3 })),
  }),
});

/** Removes what an API server drops when it reads an object: null fields and patch directives. */
function asRead(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asRead);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([name, inner]) => inner !== null && !name.startsWith('$'));
  return Object.fromEntries(fields.map(([name, inner]) => [name, asRead(inner)]));
}

function kubectlMakes(object: JsonObject, body: JsonObject): unknown {
  const args = ['patch', '--local', '-f', '-', '--type=strategic', '-p', JSON.stringify(body), '-o', 'json'];
  const { status, stdout } = spawnSync('kubectl', args, { input: JSON.stringify(object), encoding: 'utf8' });
  return status === 0 ? asRead(JSON.parse(stdout)) : 'refused';
}

function weMake(kind: string, object: JsonObject, body: JsonObject): unknown {
  try {
    return asRead(applyPatch(schema, kind, object, { kind: 'strategic', body }));
  } catch {
    return 'refused';
  }
}

for (const [kind, values] of [
  ['Pod', pod],
  ['Node', node],
] as const) {
  const skip = hasKubectl ? false : 'there is no kubectl';
  test(`patches of a ${kind} have the same result in kubectl and in kubeling`, { skip }, () => {
    const triple = fc.tuple(values, values, values) as fc.Arbitrary<[JsonObject, JsonObject, JsonObject]>;
    fc.assert(
      fc.property(triple, (given) => {
        const plain = JSON.parse(JSON.stringify(given)) as [JsonObject, JsonObject, JsonObject];
        const [meanwhile, before, after] = plain.map((object) => withoutEmptyFields(object));
        const body = strategicDiff(schema, kind, before ?? {}, after ?? {}) ?? {};
        assert.deepEqual(weMake(kind, meanwhile ?? {}, body), kubectlMakes(meanwhile ?? {}, body));
      }),
      { numRuns: runs },
    );
  });
}
