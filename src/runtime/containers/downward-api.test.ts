import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import { readResources } from '../../pods/index.ts';
import { formatMap, orderPodIps, podField, resourceField } from './downward-api.ts';
import { goQuote } from './go-format.ts';

const pod = aPod({
  metadata: { labels: { app: 'web', 'a/b': 'x' }, annotations: { note: 'say "hi"\n', 'odd[key]': '1' } },
  spec: { nodeName: 'node-1', serviceAccountName: 'robot' },
});
const addresses = { podIps: ['10.0.0.7', 'fd00::7'], hostIps: ['192.0.2.1', 'fd01::1'] };

const fields: readonly [string, string][] = [
  ['metadata.name', 'web'],
  ['metadata.namespace', 'default'],
  ['metadata.uid', 'uid-1'],
  ['metadata.labels', 'a/b="x"\napp="web"'],
  ["metadata.labels['app']", 'web'],
  ["metadata.labels['none']", ''],
  ["metadata.annotations['odd[key]']", '1'],
  ['metadata.annotations', 'note="say \\"hi\\"\\n"\nodd[key]="1"'],
  ['spec.nodeName', 'node-1'],
  ['spec.serviceAccountName', 'robot'],
  ['status.hostIP', '192.0.2.1'],
  ['status.hostIPs', '192.0.2.1,fd01::1'],
  ['status.podIP', '10.0.0.7'],
  ['status.podIPs', '10.0.0.7,fd00::7'],
];
for (const [fieldPath, expected] of fields) {
  test(`downward API: resolves the field ${fieldPath}`, () =>
    assert.equal(podField(pod, { fieldPath }, addresses), expected));
}

test('lists the node addresses for the downward API with the family of the first address first', () => {
  assert.deepEqual(orderPodIps(['10.0.0.7', 'fd00::7'], ['fd01::1']), ['fd00::7', '10.0.0.7']);
  assert.deepEqual(orderPodIps(['fd00::7', 'fd00::8'], []), ['fd00::7']);
});

test('rejects unsupported fields of the downward API', () => {
  assert.throws(() => podField(pod, { fieldPath: 'spec.containers' }, addresses), {
    code: 'CONTAINER_CONFIG',
    message: 'unsupported fieldPath: spec.containers',
  });
  assert.throws(() => podField(pod, { fieldPath: "spec.x['y']" }, addresses), {
    message: "field label does not support subscript: spec.x['y']",
  });
});

const quotes: readonly [string, string][] = [
  ['plain', '"plain"'],
  ['"\\', '"\\"\\\\"'],
  ['\x07\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
  ['\x00\x7f', '"\\x00\\x7f"'],
  ['héllo 世界 🙂', '"héllo 世界 🙂"'],
  ['\u00a0\u200b', '"\\u00a0\\u200b"'],
  ['\u{e0001}', '"\\U000e0001"'],
];
for (const [text, expected] of quotes) {
  test(`downward API: the text ${JSON.stringify(text)} is quoted as ${expected}`, () =>
    assert.equal(goQuote(text), expected));
}

test('formats an empty map of labels or annotations as an empty string', () => assert.equal(formatMap(), ''));

const main: Container = {
  name: 'main',
  resources: { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '1500m', 'hugepages-2Mi': '4Mi' } },
};
const allocatable = readResources({ cpu: '4', memory: '8Gi', 'ephemeral-storage': '10Gi' });
const resources: readonly [string, string | undefined, string][] = [
  ['limits.cpu', undefined, '2'],
  ['limits.cpu', '1m', '1500'],
  ['limits.cpu', '0', '2'],
  ['requests.cpu', undefined, '1'],
  ['requests.cpu', '1m', '250'],
  ['requests.memory', '1Mi', '32'],
  ['requests.memory', '3Mi', '11'],
  ['limits.memory', '1Gi', '8'],
  ['limits.ephemeral-storage', '1Gi', '10'],
  ['requests.ephemeral-storage', undefined, '0'],
  ['limits.hugepages-2Mi', '1Mi', '4'],
  ['limits.hugepages-1Gi', undefined, '0'],
];
for (const [resource, divisor, expected] of resources) {
  test(`downward API: ${resource} with divisor ${divisor ?? 'one'} is ${expected}`, () => {
    const whole = aPod({ spec: { containers: [main] } });
    assert.equal(resourceField(whole, main, { resource, divisor }, allocatable), expected);
  });
}

test("downward API: a container without a limit gets the limit of its pod, or else the node's allocatable", () => {
  const whole = aPod({ spec: { containers: [main], resources: { limits: { memory: '2Gi' } } } });
  assert.equal(resourceField(whole, main, { resource: 'limits.memory', divisor: '1Gi' }, allocatable), '2');
});

test('resolves a resource of another container, and rejects a missing container name', () => {
  const whole = aPod({ spec: { containers: [main], initContainers: [{ name: 'init' }] } });
  const init = { name: 'init' };
  assert.equal(
    resourceField(whole, init, { resource: 'limits.cpu', containerName: 'main' }, allocatable),
    '2',
  );
  assert.throws(
    () => resourceField(whole, init, { resource: 'limits.cpu', containerName: 'x' }, allocatable),
    {
      message: 'container x not found',
    },
  );
  assert.throws(() => resourceField(whole, init, { resource: 'limits.gpu' }, allocatable), {
    message: 'unsupported container resource : limits.gpu',
  });
});
