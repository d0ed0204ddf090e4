import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrontRig } from '../fakes/api-front.ts';

const pods = '/api/v1/namespaces/a/pods';
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';

const object = {
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: 'x', namespace: 'a', resourceVersion: '7' },
  data: { on: 'yes' },
};
const list = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '9' }, items: [object] };

async function openRig(): Promise<FrontRig> {
  const harness = await FrontRig.open();
  harness.api.answer = ({ verb }) =>
    verb === 'list' ? { kind: 'list', code: 200, list } : { kind: 'object', code: 200, object };
  return harness;
}

test('responds with the most preferred available media type of the Accept header', async () => {
  await using harness = await openRig();
  const cases: readonly (readonly [string | undefined, string])[] = [
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/vnd.kubernetes.protobuf, application/json', 'application/json'],
    ['application/cbor, application/json;q=0.1', 'application/json'],
    ['application/json;q=0.1, application/yaml;q=0.9', 'application/yaml'],
    ['application/yaml;q=0.1, */*;q=0.2', 'application/json'],
    ['application/json;as=Table;v=v9;g=meta.k8s.io, application/json', 'application/json'],
  ];
  for (const [accept, type] of cases) {
    const { status, headers } = await harness.ask(
      `${pods}/x`,
      accept === undefined ? {} : { headers: { accept } },
    );
    assert.deepEqual([status, headers['content-type']], [200, type], String(accept));
  }
});

test('returns 406 when no acceptable media type is available', async () => {
  await using harness = await openRig();
  for (const accept of [
    'application/cbor',
    'text/html',
    'application/vnd.kubernetes.protobuf',
    'application/json;q=0',
  ]) {
    const { status, json } = await harness.ask(`${pods}/x`, { headers: { accept } });
    assert.deepEqual([status, json['reason']], [406, 'NotAcceptable'], accept);
    assert.match(String(json['message']), /^only the following media types are accepted: application\/json/);
  }
  assert.deepEqual(harness.api.calls, []);
});

test('writes YAML that other parsers read identically', async () => {
  await using harness = await openRig();
  const { text } = await harness.ask(`${pods}/x`, { headers: { accept: 'application/yaml' } });
  assert.match(text, /\nmetadata:\n {2}name: x\n/);
  assert.match(text, /"?on"?: "yes"\n/);
});

test('indents JSON for pretty=true, browsers and curl', async () => {
  await using harness = await openRig();
  assert.match((await harness.ask(`${pods}/x?pretty=true`)).text, /^\{\n {2}"kind": "ConfigMap"/);
  assert.match((await harness.ask(`${pods}/x`, { headers: { 'user-agent': 'curl/8' } })).text, /^\{\n/);
  assert.match(
    (await harness.ask(`${pods}/x?pretty=0`, { headers: { 'user-agent': 'curl/8' } })).text,
    /^\{"kind"/,
  );
});

test('returns a table that includes as much of each object as the client requests', async () => {
  await using harness = await openRig();
  const rowOf = async (path: string) => {
    const { json, status } = await harness.ask(path, { headers: { accept: `${table},application/json` } });
    assert.deepEqual([status, json['kind'], json['apiVersion']], [200, 'Table', 'meta.k8s.io/v1']);
    return { row: (json['rows'] as { object: { kind: string } | null }[])[0], metadata: json['metadata'] };
  };
  const maps = '/api/v1/namespaces/a/configmaps';
  assert.deepEqual(await rowOf(maps).then(({ metadata }) => metadata), { resourceVersion: '9' });
  assert.equal((await rowOf(`${maps}/x`)).row?.object?.kind, 'PartialObjectMetadata');
  assert.equal((await rowOf(`${maps}?includeObject=Object`)).row?.object?.kind, 'ConfigMap');
  assert.equal((await rowOf(`${maps}?includeObject=None`)).row?.object, null);
  const wrong = await harness.ask(`${maps}?includeObject=All`, { headers: { accept: table } });
  assert.equal(wrong.status, 400);
  assert.match(String(wrong.json['message']), /includeObject: Invalid value: "All": must be/);
});

test('returns partial metadata for one object or a list, and 406 when the client requests the list type for an object or the object type for a list', async () => {
  await using harness = await openRig();
  const kindOf = async (path: string, accept: string) => {
    const { status, json } = await harness.ask(path, { headers: { accept } });
    return [status, json['kind']];
  };
  assert.deepEqual(await kindOf(`${pods}/x`, partial), [200, 'PartialObjectMetadata']);
  assert.deepEqual(await kindOf(pods, partialList), [200, 'PartialObjectMetadataList']);
  assert.deepEqual(await kindOf(pods, partial), [406, 'Status']);
  assert.deepEqual(await kindOf(`${pods}/x`, partialList), [406, 'Status']);
});

test('returns a Status unchanged, whatever the Accept header', async () => {
  await using harness = await FrontRig.open();
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
  harness.api.answer = () => ({ kind: 'status', code: 200, status });
  for (const accept of [table, partial])
    assert.deepEqual(
      (await harness.ask(`${pods}/x`, { method: 'DELETE', headers: { accept } })).json,
      status,
    );
});

test('responds to HEAD with the headers of GET and without a body', async () => {
  await using harness = await openRig();
  const get = await harness.ask(`${pods}/x`);
  const head = await harness.ask(`${pods}/x`, { method: 'HEAD' });
  assert.deepEqual([head.status, head.text], [200, '']);
  assert.equal(head.headers['content-length'], get.headers['content-length']);
});

test("returns published documents such as discovery unchanged and passes the request's Accept and If-None-Match to their provider", async () => {
  const page = { status: 200, headers: { 'Content-Type': 'application/json', ETag: '"e"' }, body: '{}' };
  const requests: unknown[] = [];
  await using harness = await FrontRig.open({
    deps: {
      documents: {
        document: ({ path, accept, ifNoneMatch }) => {
          requests.push([path, accept, ifNoneMatch]);
          if (path !== '/api') return undefined;
          return ifNoneMatch === '"e"' ? { ...page, status: 304, body: '' } : page;
        },
      },
      extraDocuments: {
        '/metrics': () => ({ status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'm 1\n' }),
      },
    },
  });
  const { status, headers, text } = await harness.ask('/api', { headers: { accept: 'a/b' } });
  assert.deepEqual([status, headers['etag'], text], [200, '"e"', '{}']);
  assert.deepEqual(requests, [['/api', 'a/b', undefined]]);
  assert.equal((await harness.ask('/api/', { headers: { 'if-none-match': '"e"' } })).status, 304);
  assert.equal((await harness.ask('/metrics')).text, 'm 1\n');
  assert.equal((await harness.ask('/apis')).status, 404);
  assert.equal((await harness.ask('/constructor')).status, 404);
});
