import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindsRig, named } from '../../../test/fakes/kinds-rig.ts';
import { refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';

const { configMaps, secrets } = apiResources;

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

test('validates name and labels and reports all errors', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(configMaps, { metadata: { name: 'A_b', labels: { '-x': 'y' } } }),
    `ConfigMap "A_b" is invalid: [metadata.name: Invalid value: "A_b": ${subdomain}, metadata.labels: Invalid value: "-x": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]`,
  );
});

test('rejects a key in both data and binaryData', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(configMaps, named('c', { data: { a: '1' }, binaryData: { a: 'AA==' } })),
    'ConfigMap "c" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData',
  );
  assert.match(
    await harness.refusal(configMaps, named('c', { data: { '../x': '1' } })),
    /must not start with '\.\.'/,
  );
  assert.equal(
    await harness.refusal(configMaps, named('c', { data: { a: 'x'.repeat(1024 * 1024 + 1) } })),
    'ConfigMap "c" is invalid: []: Too long: may not be more than 1048576 bytes',
  );
});

test('rejects changes of an immutable config map', async () => {
  using harness = new KindsRig();
  const created = await harness.create(configMaps, named('c', { immutable: true, data: { a: '1' } }));
  const { message } = await refusedWith(
    harness.update(configMaps, { ...created, immutable: false, data: { a: '2' } }),
    422,
  );
  assert.equal(
    message,
    'ConfigMap "c" is invalid: [immutable: Forbidden: field is immutable when `immutable` is set, data: Forbidden: field is immutable when `immutable` is set]',
  );
  await harness.update(configMaps, { ...created, metadata: { ...created.metadata, labels: { a: 'b' } } });
});

test('merges stringData into data and keeps the type of a secret', async () => {
  using harness = new KindsRig();
  const created = await harness.create(secrets, named('s', { stringData: { a: 'x' }, data: { b: 'eQ==' } }));
  assert.deepEqual(created['data'], { b: 'eQ==', a: 'eA==' });
  assert.equal(created['type'], 'Opaque');
  assert.equal(created['stringData'], undefined);
  await refusedWith(
    harness.update(secrets, { ...created, type: 'example.com/x' }),
    422,
    'Secret "s" is invalid: type: Invalid value: "example.com/x": field is immutable',
  );
});

test('requires the data keys of known secret types', async () => {
  using harness = new KindsRig();
  const of = (type: string, data: JsonObject = {}) => harness.refusal(secrets, named('s', { type, data }));
  assert.equal(
    await of('kubernetes.io/tls'),
    'Secret "s" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
  );
  assert.match(await of('kubernetes.io/dockerconfigjson'), /data\[\.dockerconfigjson\]: Required value/);
  assert.match(
    await of('kubernetes.io/dockerconfigjson', { '.dockerconfigjson': 'eA==' }),
    /<secret contents redacted>/,
  );
  assert.match(await of('kubernetes.io/basic-auth'), /data\[username\]: Required value, data\[password\]/);
  assert.match(await of('kubernetes.io/ssh-auth'), /data\[ssh-privatekey\]: Required value/);
  assert.match(
    await of('kubernetes.io/service-account-token'),
    /metadata\.annotations\[kubernetes\.io\/service-account\.name\]: Required value/,
  );
});
