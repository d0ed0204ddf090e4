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
  test(`decodes a ${kind} from protobuf to the same object as from JSON`, () => {
    for (let seed = 0; seed < 20; seed++) {
      const object = anyObject(table, kind, seededRandom(seed));
      const read = reader.read(kind, encodeObject(table, kind, object));
      assert.deepEqual(decodeJson(table, kind, read).value, decodeJson(table, kind, object).value);
    }
  });
}

test('omits unset protobuf fields and keeps zero values of optional ones', () => {
  const spec = { restartPolicy: '', hostNetwork: false, terminationGracePeriodSeconds: 0, hostUsers: false };
  const metadata = { name: '', generation: 0, labels: { a: '' } };
  const bytes = encodeObject(table, 'Pod', { metadata, spec });
  assert.deepEqual(reader.read('Pod', bytes), {
    metadata: { labels: { a: '' } },
    spec: { terminationGracePeriodSeconds: 0, hostUsers: false },
  });
});

test('omits a time without seconds and nanoseconds', () => {
  assert.deepEqual(reader.read('ObjectMeta', Buffer.from('4200', 'hex')), {});
});

test('accepts packed repeated numbers in protobuf', () => {
  assert.deepEqual(reader.read('PodSecurityContext', Buffer.from('2203010203', 'hex')), {
    supplementalGroups: [1, 2, 3],
  });
});

test('skips unknown protobuf fields', () => {
  assert.deepEqual(reader.read('LocalObjectReference', Buffer.from('fa3f03616263f83f050a0178', 'hex')), {
    name: 'x',
  });
});

test('every field in the list of nullable protobuf fields exists in its kind', () => {
  for (const [kind, fields] of nullableFields()) {
    const known = [...table.wireOf(kind).values()].map(({ name }) => name);
    for (const field of fields) assert.ok(known.includes(field), `${kind}.${field}`);
  }
});

test('decodes random bytes or reports them as malformed', () => {
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

test('decodes mutated objects or reports them as malformed', () => {
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
