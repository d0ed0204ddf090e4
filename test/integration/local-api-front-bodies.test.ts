import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WireWriter } from '../../src/protocols/protobuf/wire.ts';
import { FrontRig } from '../fakes/api-front.ts';

const pods = '/api/v1/namespaces/a/pods';
const configMaps = '/api/v1/namespaces/a/configmaps';
const json = { 'content-type': 'application/json' };

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'x' },
  spec: { containers: [{ name: 'c', image: 'i', resources: { limits: { cpu: '0.5', memory: '1024Mi' } } }] },
};

test("decodes a JSON body as the resource's type with canonical quantities", async () => {
  await using harness = await FrontRig.open();
  const { status } = await harness.ask(pods, { method: 'POST', headers: json, body: JSON.stringify(pod) });
  assert.equal(status, 200);
  const { body, dryRun, patch } = harness.api.last;
  const limits = { cpu: '500m', memory: '1Gi' };
  const spec = { containers: [{ name: 'c', image: 'i', resources: { limits } }] };
  assert.deepEqual([JSON.parse(JSON.stringify(body)), dryRun, patch], [{ ...pod, spec }, false, undefined]);
});

test('defaults the name and namespace of an object from the request path', async () => {
  await using harness = await FrontRig.open();
  await harness.ask(configMaps, { method: 'POST', body: '{"metadata":{"name":"x"}}' });
  assert.deepEqual(harness.api.last.body, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } });
});

const yaml = 'kind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: "yes"\n';

test('decodes a YAML body to the same object as JSON', async () => {
  await using harness = await FrontRig.open();
  const headers = { 'content-type': 'application/yaml' };
  const { status } = await harness.ask(configMaps, { method: 'POST', headers, body: yaml });
  assert.equal(status, 200);
  const expected = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: 'yes' } };
  assert.deepEqual(harness.api.last.body, expected);
  for (const body of ['a: [', 'a: 1\n---\nb: 2\n', '']) {
    const refused = await harness.ask(configMaps, { method: 'POST', headers, body });
    assert.deepEqual([refused.status, refused.json['reason']], [400, 'BadRequest'], body);
  }
  const twice = await harness.ask(`${configMaps}?fieldValidation=Strict`, {
    method: 'POST',
    headers,
    body: `${yaml}immutable: true\nimmutable: true\n`,
  });
  assert.match(String(twice.json['message']), /strict decoding error: duplicate field "immutable"/);
});

test('rejects, warns about or ignores unknown and duplicate fields according to fieldValidation', async () => {
  await using harness = await FrontRig.open();
  const body = `{"kind":"Pod","metadata":{"name":"x","name":"x"},"spec":{"containers":[],"restartPolcy":"Never","zzz":1}}`;
  const ask = (query: string) => harness.ask(`${pods}?${query}`, { method: 'POST', headers: json, body });
  const strict = await ask('fieldValidation=Strict');
  assert.deepEqual(
    [strict.status, strict.json['message']],
    [
      400,
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: duplicate field "metadata.name", unknown field "spec.restartPolcy", unknown field "spec.zzz"',
    ],
  );
  for (const query of ['', 'fieldValidation=Warn']) {
    const { status, headers } = await ask(query);
    assert.equal(status, 200);
    assert.equal(
      headers['warning'],
      '299 - "duplicate field \\"metadata.name\\"", 299 - "unknown field \\"spec.restartPolcy\\" (did you mean restartPolicy?)", 299 - "unknown field \\"spec.zzz\\""',
    );
  }
  const ignored = await ask('fieldValidation=Ignore');
  assert.deepEqual([ignored.status, ignored.headers['warning']], [200, undefined]);
  assert.deepEqual(Object.keys((harness.api.last.body as { spec: object }).spec), ['containers']);
  const unknown = await ask('fieldValidation=Perhaps');
  assert.deepEqual([unknown.status, unknown.json['reason']], [422, 'Invalid']);
  assert.equal(
    unknown.json['message'],
    'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Perhaps": supported values: "", "Ignore", "Strict", "Warn"',
  );
});

test('returns 400 with the reason for a body that does not match the resource', async () => {
  await using harness = await FrontRig.open();
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /must be of type Pod\): json parse error/],
    ['{', /must be of type Pod\): json parse error/],
    ['[]', /must be an object/],
    ['"x"', /must be an object/],
    ['null', /must be an object/],
    ['{"kind":"ConfigMap"}', /ConfigMap in version "v1" cannot be handled as a Pod/],
    ['{"kind":5}', /must be strings/],
    ['{"apiVersion":"apps/v1"}', /\(apps\/v1\) does not match the expected API version \(v1\)/],
    ['{"spec":{"containers":5}}', /spec.containers must be a list: current value is a number/],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, /nested more than/],
    [`{"metadata":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}`, /nested more than/],
  ];
  for (const [body, expected] of cases) {
    const response = await harness.ask(pods, { method: 'POST', headers: json, body });
    assert.equal(response.status, 400, body.slice(0, 40));
    assert.match(String(response.json['message']), expected);
  }
  assert.deepEqual(harness.complaints, []);
});

test('returns 413 for a body of more than three megabytes', async () => {
  await using harness = await FrontRig.open();
  const data = (size: number) => JSON.stringify({ data: { a: 'x'.repeat(size) } });
  const fits = await harness.ask(configMaps, {
    method: 'POST',
    headers: json,
    body: data(3 * 1024 * 1024 - 40),
  });
  assert.equal(fits.status, 200);
  for (const headers of [json, { ...json, 'transfer-encoding': 'chunked' }]) {
    const large = await harness.ask(configMaps, { method: 'POST', headers, body: data(3 * 1024 * 1024) });
    assert.deepEqual([large.status, large.json['reason']], [413, 'RequestEntityTooLarge']);
  }
});

test('returns 415 for unsupported content types, so that clients fall back to JSON', async () => {
  await using harness = await FrontRig.open();
  for (const type of ['application/cbor', 'text/plain', 'nonsense', 'application/x-www-form-urlencoded']) {
    const { status, json: response } = await harness.ask(pods, {
      method: 'POST',
      headers: { 'content-type': type },
      body: '{}',
    });
    assert.deepEqual([status, response['reason']], [415, 'UnsupportedMediaType'], type);
    assert.match(
      String(response['message']),
      /accepted media types include: application\/json, application\/yaml/,
    );
  }
});

test('accepts three patch types, selected by content type', async () => {
  await using harness = await FrontRig.open();
  const patch = (type: string, body: string, query = '') =>
    harness.ask(`${pods}/x?${query}`, { method: 'PATCH', headers: { 'content-type': type }, body });
  const types = [
    ['application/json-patch+json', 'json', '[{"op":"remove","path":"/metadata/labels"}]'],
    ['application/merge-patch+json', 'merge', '{"metadata":{"labels":null}}'],
    ['application/strategic-merge-patch+json; charset=utf-8', 'strategic', '{"spec":{"$patch":"replace"}}'],
  ] as const;
  for (const [type, kind, body] of types) {
    const { status, headers } = await patch(type, body);
    assert.deepEqual([status, headers['warning']], [200, undefined]);
    assert.deepEqual([harness.api.last.patch, harness.api.last.body], [kind, JSON.parse(body)]);
  }
  for (const type of ['application/apply-patch+yaml', 'application/json', ''])
    assert.equal((await patch(type, '{}')).status, 415, type);
  assert.equal((await patch('application/json-patch+json', '{}')).status, 400);
  assert.equal((await patch('application/merge-patch+json', '[]')).status, 400);
});

test('validates a patched object like any other', async () => {
  await using harness = await FrontRig.open();
  let patched: Record<string, unknown> = {};
  harness.api.answer = ({ decodePatched }) => ({
    kind: 'object',
    code: 200,
    object: decodePatched?.(patched) ?? {},
  });
  const patch = (body: string, query = '') =>
    harness.ask(`${pods}/x?${query}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body,
    });
  patched = { spec: { containers: [], overhead: { cpu: '0.5' } } };
  assert.deepEqual((await patch('{}')).json, { spec: { containers: [], overhead: { cpu: '500m' } } });
  patched = { spec: { containrs: [], containers: [] } };
  const warned = await patch('{"spec":1,"spec":2}');
  assert.match(String(warned.headers['warning']), /duplicate field \\"spec\\"/);
  assert.match(
    String(warned.headers['warning']),
    /unknown field \\"spec.containrs\\" \(did you mean containers\?\)/,
  );
  const strict = await patch('{"a":1}', 'fieldValidation=Strict');
  assert.equal(strict.status, 422);
  assert.equal(
    strict.json['message'],
    'Pod "" is invalid: patch: Invalid value: "{\\"a\\":1}": strict decoding error: unknown field "spec.containrs"',
  );
  patched = { spec: { containers: 'x' } };
  const wrong = await patch('{}', 'fieldValidation=Ignore');
  assert.deepEqual([wrong.status, wrong.json['reason']], [422, 'Invalid']);
  assert.match(String(wrong.json['message']), /spec.containers must be a list: current value is a string/);
});

test('reads delete options from the body or the query', async () => {
  await using harness = await FrontRig.open();
  const remove = (query: string, body?: string) =>
    harness.ask(`${pods}/x?${query}`, { method: 'DELETE', headers: json, ...(body && { body }) });
  await remove('');
  assert.deepEqual([harness.api.last.body, harness.api.last.dryRun], [undefined, false]);
  await remove('gracePeriodSeconds=0&propagationPolicy=Background&dryRun=All');
  assert.deepEqual(
    [harness.api.last.body, harness.api.last.dryRun],
    [
      {
        kind: 'DeleteOptions',
        apiVersion: 'meta.k8s.io/v1',
        gracePeriodSeconds: 0,
        propagationPolicy: 'Background',
        dryRun: ['All'],
      },
      true,
    ],
  );
  await remove('', '{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"dryRun":["All"]}');
  const { body, dryRun } = harness.api.last;
  assert.deepEqual([(body as { preconditions: object }).preconditions, dryRun], [{ uid: 'u' }, true]);
  const wrong: readonly (readonly [string, number, string?])[] = [
    ['gracePeriodSeconds=soon', 400],
    ['orphanDependents=perhaps', 400],
    ['propagationPolicy=Never', 422],
    ['propagationPolicy=Orphan&orphanDependents=true', 422],
    ['dryRun=Some', 422],
    ['', 422, '{"dryRun":["Some"]}'],
    ['', 400, '{"kind":"Pod"}'],
  ];
  for (const [query, status, sent] of wrong) assert.equal((await remove(query, sent)).status, status, query);
});

test('accepts only dryRun=All', async () => {
  await using harness = await FrontRig.open();
  const create = (query: string) => harness.ask(`${configMaps}?${query}`, { method: 'POST', body: '{}' });
  await create('dryRun=All');
  assert.equal(harness.api.last.dryRun, true);
  const { status, json: response } = await create('dryRun=Perhaps');
  assert.deepEqual(
    [status, response['message']],
    [
      422,
      'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Perhaps"]: supported values: "All"',
    ],
  );
});

/** A ConfigMap in protobuf as client-go sends it: unset fields are empty strings. */
function envelope(apiVersion: string, kind: string, raw: Uint8Array): Buffer {
  const writer = new WireWriter();
  const part = (number: number, write: () => void) => {
    writer.uint32((number << 3) | 2);
    write();
  };
  part(1, () => {
    const start = writer.begin();
    part(1, () => writer.string(apiVersion));
    part(2, () => writer.string(kind));
    writer.end(start);
  });
  part(2, () => writer.bytes(raw));
  part(3, () => writer.string(''));
  part(4, () => writer.string(''));
  return Buffer.concat([Buffer.from('6b387300', 'hex'), writer.finish()]);
}

const protobuf = { 'content-type': 'application/vnd.kubernetes.protobuf' };

test('decodes a protobuf body and responds in JSON', async () => {
  await using harness = await FrontRig.open();
  // metadata{name "x", generateName "", creationTimestamp {}}, data{"a": "b"}
  const raw = Buffer.from('0a070a017812004200' + '12060a0161120162', 'hex');
  const headers = { ...protobuf, accept: 'application/vnd.kubernetes.protobuf,application/json' };
  const body = envelope('v1', 'ConfigMap', raw);
  const { status, headers: got } = await harness.ask(configMaps, { method: 'POST', headers, body });
  assert.deepEqual([status, got['content-type']], [200, 'application/json']);
  const expected = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: 'b' } };
  assert.deepEqual(harness.api.last.body, expected);
});

test('accepts a protobuf deletion without options', async () => {
  await using harness = await FrontRig.open();
  const raw = Buffer.from('0800', 'hex');
  const body = envelope('v1', 'DeleteOptions', raw);
  const { status } = await harness.ask(`${pods}/x`, { method: 'DELETE', headers: protobuf, body });
  assert.equal(status, 200);
  assert.equal((harness.api.last.body as { gracePeriodSeconds: number }).gracePeriodSeconds, 0);
});

test('returns 400 for malformed protobuf and 415 for an unknown kind', async () => {
  await using harness = await FrontRig.open();
  const post = (body: Uint8Array) => harness.ask(configMaps, { method: 'POST', headers: protobuf, body });
  const broken = [
    Buffer.from(''),
    Buffer.from('k8s'),
    Buffer.from('{}'),
    envelope('v1', 'ConfigMap', Buffer.from('0aff', 'hex')),
    envelope('v1', 'ConfigMap', Buffer.from('0805', 'hex')),
    envelope('v1', 'Pod', Buffer.alloc(0)),
  ];
  for (const body of broken) assert.equal((await post(body)).status, 400, body.toString('hex'));
  assert.equal((await post(envelope('apps/v1', 'Deployment', Buffer.alloc(0)))).status, 415);
  assert.deepEqual(harness.complaints, []);
});
