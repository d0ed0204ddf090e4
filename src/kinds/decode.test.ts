import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readYaml } from '../lib/index.ts';
import { decodeJson, decodeTree } from './decode.ts';
import { FieldPath } from './field-path.ts';
import type { ConfigMap, Event, Pod, Secret } from './gen/kinds.ts';
import { KindTable } from './table.ts';

const table = new KindTable();

async function decode<T = Pod>(text: string, kind = 'Pod') {
  const { tree } = await readYaml(text);
  assert.ok(tree, 'the text should be YAML');
  const { value, findings } = decodeTree<T>(table, kind, tree);
  const reported = findings.map(
    ({ severity, field, at, message }) => `${severity} ${at?.line}:${at?.column} ${field}: ${message}`,
  );
  return { value, told: reported };
}

test('quantities are converted to their canonical form', async () => {
  const { value, told } = await decode(`
spec:
  containers:
  - name: a
    resources: {limits: {cpu: 0.5, memory: 1024Mi, x.io/y: 3, ephemeral-storage: "1e3"}}
`);
  assert.deepEqual(told, []);
  assert.deepEqual(value.spec?.containers[0]?.resources?.limits, {
    cpu: '500m',
    memory: '1Gi',
    'x.io/y': '3',
    'ephemeral-storage': '1e3',
  });
});

test('YAML 1.1 is decoded like in Kubernetes: octal modes, and yes and no as booleans', async () => {
  const { value, told } = await decode(`
spec:
  hostNetwork: yes
  volumes: [{name: a, secret: {defaultMode: 0644}}]
`);
  assert.deepEqual(told, []);
  assert.equal(value.spec?.hostNetwork, true);
  assert.equal(value.spec?.volumes?.[0]?.secret?.defaultMode, 0o644);
});

test('decodes the fields of an inlined kind (httpGet of ProbeHandler) together with the fields of the enclosing kind (Probe)', async () => {
  const { value, told } = await decode(`
spec:
  containers:
  - name: a
    livenessProbe: {periodSeconds: 3, httpGet: {port: http}}
    readinessProbe: {tcpSocket: {port: 8080}}
`);
  assert.deepEqual(told, []);
  const [container] = value.spec?.containers ?? [];
  assert.deepEqual(container?.livenessProbe, { periodSeconds: 3, httpGet: { port: 'http' } });
  assert.equal(container?.readinessProbe?.tcpSocket?.port, 8080);
});

test('an unknown field is a warning with a suggestion', async () => {
  const { told } = await decode('spec:\n  contaners: []\n  restartpolicy: Never\n');
  assert.deepEqual(told, [
    'warning 2:3 spec.contaners: is not a known field and has no effect (did you mean containers?)',
    'warning 3:3 spec.restartpolicy: is not a known field and has no effect (did you mean restartPolicy?)',
  ]);
});

test('a value of the wrong type is an error at the position of the value', async () => {
  const { told } = await decode(`metadata:
  name: 12
  labels: {a: true}
spec:
  hostNetwork: "true"
  terminationGracePeriodSeconds: 1.5
  containers: {}
  nodeSelector: [a]
  volumes:
  - name: x
    emptyDir: {sizeLimit: lots}
`);
  assert.deepEqual(told, [
    'error 2:9 metadata.name: must be a string (put it in quotes): current value is a number',
    'error 3:15 metadata.labels[a]: must be a string (put it in quotes): current value is true',
    'error 5:16 spec.hostNetwork: must be true or false: current value is "true"',
    'error 6:34 spec.terminationGracePeriodSeconds: must be a whole number of 64 bits: current value is 1.5',
    'error 7:15 spec.containers: must be a list: current value is a map',
    'error 8:17 spec.nodeSelector: must be a map of keys and values: current value is a list',
    'error 11:27 spec.volumes[0].emptyDir.sizeLimit: must be a quantity such as 500m, 64Mi or 2G: current value is "lots"',
  ]);
});

test('rejects numbers that do not fit into the integer type of their field', async () => {
  const { told } = await decode('spec: {containers: [{name: a, ports: [{containerPort: 2147483648}]}]}');
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /containerPort: must be a whole number of 32 bits/);
});

test('null counts as absent, and missing required fields are present and empty', async () => {
  const { value, told } = await decode(
    'metadata: {creationTimestamp: null, labels: null}\nspec: {containers: [{image: x}]}\nstatus: ~\n',
  );
  assert.deepEqual(told, []);
  assert.deepEqual(value, { metadata: {}, spec: { containers: [{ image: 'x', name: '' }] } });
});

test('the last value of a duplicate key counts, with a warning', async () => {
  const { value, told } = await decode('metadata:\n  name: a\n  name: b\n');
  assert.equal(value.metadata?.name, 'b');
  assert.deepEqual(told, ['warning 2:3 metadata.name: is written twice: the last one counts']);
});

test('times are stored in UTC, with seconds or microseconds depending on the field', async () => {
  const event = await decode<Event>(
    'firstTimestamp: 2026-01-31T12:00:00.9+02:00\neventTime: "2026-01-31T12:00:00.123456789Z"\n',
    'Event',
  );
  assert.deepEqual(event.told, []);
  assert.equal(event.value.firstTimestamp, '2026-01-31T10:00:00Z');
  assert.equal(event.value.eventTime, '2026-01-31T12:00:00.123456Z');
  assert.match((await decode('metadata: {creationTimestamp: yesterday}')).told[0] ?? '', /must be a time/);
});

test('rejects invalid base64 in a bytes field with a message that does not quote the value', async () => {
  const good = await decode<Secret>('data: {a: aGVsbG8=, b: ""}', 'Secret');
  assert.deepEqual(good.value.data, { a: 'aGVsbG8=', b: '' });
  const bad = await decode<Secret>('data: {a: "hunter2!"}', 'Secret');
  assert.deepEqual(bad.told, ['error 1:11 data[a]: must be base64']);
});

test('decodes a key like __proto__ as an ordinary key', async () => {
  const { value } = await decode<ConfigMap>('data: {__proto__: x, constructor: z}', 'ConfigMap');
  assert.deepEqual(Object.keys(value.data ?? {}), ['__proto__', 'constructor']);
  assert.equal(Object.getPrototypeOf(value.data), Object.prototype);
});

test('decodes values of parsed JSON by the same rules as YAML, with findings that have no position', () => {
  const { value, findings } = decodeJson<Pod>(table, 'Pod', {
    metadata: { name: 'a', nam: 'b' },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1000m' } } }] },
  });
  assert.equal(value.spec?.containers[0]?.resources?.requests?.['cpu'], '1');
  assert.deepEqual(
    findings.map(({ severity, at, field }) => [severity, at, `${field}`]),
    [['warning', undefined, 'metadata.nam']],
  );
});

test('decoding never throws for any JSON, and decoding the result again changes nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      const first = decodeJson<Pod>(table, 'Pod', { metadata: json, spec: json, status: json });
      const second = decodeJson<Pod>(table, 'Pod', first.value);
      assert.deepEqual(second.value, first.value);
      assert.deepEqual(second.findings, []);
    }),
  );
});

test('a finding about a missing field has the position of the parent of the field', async () => {
  const { tree } = await readYaml('spec:\n  containers:\n  - name: a\n');
  assert.ok(tree);
  const container = FieldPath.root.child('spec', 'containers').index(0);
  assert.equal(
    `${container.child('resources', 'limits').key('cpu')}`,
    'spec.containers[0].resources.limits[cpu]',
  );
  assert.deepEqual(container.child('image').positionIn(tree), { line: 3, column: 5 });
  assert.deepEqual(container.child('name').positionIn(tree), { line: 3, column: 5 });
  assert.deepEqual(FieldPath.root.child('spec', 'volumes').index(3).positionIn(tree), { line: 1, column: 1 });
});
