import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyObject, encodeObject } from '../../../../test/fakes/protobuf-objects.ts';
import { decodeJson, KindTable } from '../../../kinds/index.ts';
import { KubelingError, seededRandom } from '../../../lib/index.ts';
import { ProtobufReader } from './protobuf-object.ts';
import { nullableFields } from './zero-values.ts';

const table = new KindTable();
const reader = new ProtobufReader(table);

const kinds =
  `Pod ConfigMap Secret Namespace ServiceAccount Service PriorityClass TokenRequest SelfSubjectAccessReview
SelfSubjectRulesReview SelfSubjectReview CertificateSigningRequest Eviction Binding DeleteOptions Lease Node Event
TokenReview SubjectAccessReview PersistentVolume PersistentVolumeClaim CSINode CSIDriver RuntimeClass`.split(
    /\s+/,
  );

for (const kind of kinds) {
  test(`a ${kind} in protobuf is what it is in JSON`, () => {
    for (let seed = 0; seed < 20; seed++) {
      const object = anyObject(table, kind, seededRandom(seed));
      const read = reader.read(kind, encodeObject(table, kind, object));
      assert.deepEqual(decodeJson(table, kind, read).value, decodeJson(table, kind, object).value);
    }
  });
}

test('what was never set is left out, and what may be set to nought is kept', () => {
  const spec = { restartPolicy: '', hostNetwork: false, terminationGracePeriodSeconds: 0, hostUsers: false };
  const metadata = { name: '', generation: 0, labels: { a: '' } };
  const bytes = encodeObject(table, 'Pod', { metadata, spec });
  assert.deepEqual(reader.read('Pod', bytes), {
    metadata: { labels: { a: '' } },
    spec: { terminationGracePeriodSeconds: 0, hostUsers: false },
  });
});

test('an empty time is no time', () => {
  assert.deepEqual(reader.read('ObjectMeta', Buffer.from('4200', 'hex')), {});
});

test('numbers of a list may come in one piece', () => {
  assert.deepEqual(reader.read('PodSecurityContext', Buffer.from('2203010203', 'hex')), {
    supplementalGroups: [1, 2, 3],
  });
});

test('fields nobody knows are passed over', () => {
  assert.deepEqual(reader.read('LocalObjectReference', Buffer.from('fa3f03616263f83f050a0178', 'hex')), {
    name: 'x',
  });
});

test('every field that may be nought is one of the table', () => {
  for (const [kind, fields] of nullableFields()) {
    const known = [...table.wireOf(kind).values()].map(({ name }) => name);
    for (const field of fields) assert.ok(known.includes(field), `${kind}.${field}`);
  }
});

test('whatever the bytes are, reading them answers or says that they are malformed', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...kinds), (bytes, kind) => {
      try {
        decodeJson(table, kind, reader.read(kind, bytes));
      } catch (error) {
        assert.ok(error instanceof KubelingError && error.code === 'PROTOBUF_MALFORMED', String(error));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('bytes of an object with some of them changed answer or are malformed', () => {
  const bytes = encodeObject(table, 'Pod', anyObject(table, 'Pod', seededRandom(3)));
  const place = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(place, { minLength: 1, maxLength: 5 }), (changes) => {
      const changed = Buffer.from(bytes);
      for (const [at, value] of changes) changed[at] = value;
      try {
        decodeJson(table, 'Pod', reader.read('Pod', changed));
      } catch (error) {
        assert.ok(error instanceof KubelingError && error.code === 'PROTOBUF_MALFORMED', String(error));
      }
    }),
    { numRuns: 300 },
  );
});
