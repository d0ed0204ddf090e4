import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ObjectReader, StoredObject } from '../api/index.ts';
import type { StreamCall } from './deps.ts';
import type { KubeletDialer } from './kubelet-dialer.ts';
import { allowedAddress, proxyTarget } from './proxy-target.ts';

const objects = new Map<string, unknown>([
  [
    'pods/web',
    {
      metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
      spec: { containers: [{ name: 'a', ports: [{ name: 'http', containerPort: 8080 }] }] },
      status: { podIP: '10.1.2.3', conditions: [{ type: 'Ready', status: 'True' }] },
    },
  ],
  ['pods/host', { metadata: { name: 'host' }, spec: {}, status: { podIP: '127.0.0.1' } }],
  [
    'services/web',
    {
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ name: 'main', port: 80, targetPort: 'http' }] },
    },
  ],
  ['services/none', { metadata: { name: 'none' }, spec: { selector: { app: 'x' }, ports: [{ port: 80 }] } }],
  ['services/written', { metadata: { name: 'written' }, spec: { ports: [{ port: 80 }] } }],
  [
    'endpoints/written',
    { metadata: { name: 'written' }, subsets: [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 81 }] }] },
  ],
  [
    'nodes/n1',
    {
      metadata: { name: 'n1' },
      status: {
        addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      },
    },
  ],
]);
const reader: ObjectReader = {
  get: ({ plural }, _namespace, name) => objects.get(`${plural}/${name}`) as StoredObject | undefined,
  all: ({ plural }) =>
    [...objects].filter(([key]) => key.startsWith(`${plural}/`)).map(([, object]) => object as StoredObject),
};
const kubelet: KubeletDialer = {
  locate: () => undefined,
  credentials: () => ({ cert: '', key: '', ca: undefined }),
};

function target(resource: ApiResource, name: string) {
  const call = { entry: { resource }, namespace: 'default', name } as unknown as StreamCall;
  return proxyTarget(call, { objects: reader, kubelet });
}

test('selects the first port of a pod as proxy target, or the named one', () => {
  const at = { kind: 'address', host: '10.1.2.3' };
  assert.deepEqual(target(apiResources.pods, 'web'), { ...at, scheme: 'http', port: 8080 });
  assert.deepEqual(target(apiResources.pods, 'web:90'), { ...at, scheme: 'http', port: 90 });
  assert.deepEqual(target(apiResources.pods, 'https:web:90'), { ...at, scheme: 'https', port: 90 });
});

test('selects an endpoint of a service as proxy target, or a ready pod if there are no Endpoints', () => {
  const at = { kind: 'address', scheme: 'http' };
  assert.deepEqual(target(apiResources.services, 'web:main'), { ...at, host: '10.1.2.3', port: 8080 });
  assert.deepEqual(target(apiResources.services, 'web:80'), { ...at, host: '10.1.2.3', port: 8080 });
  assert.deepEqual(target(apiResources.services, 'written:80'), { ...at, host: '10.9.9.9', port: 81 });
  assert.throws(() => target(apiResources.services, 'none:80'), /no endpoints available for service "none"/);
  assert.throws(() => target(apiResources.services, 'web:81'), /no service port 81 found for service "web"/);
});

test('presents the client certificate only to proxy targets that are the kubelet port of a node', () => {
  const address = { host: '192.0.2.1', port: 10_250 };
  assert.deepEqual(target(apiResources.nodes, 'n1'), { kind: 'kubelet', address });
  assert.deepEqual(target(apiResources.nodes, 'n1:10250'), { kind: 'kubelet', address });
  assert.deepEqual(target(apiResources.nodes, 'n1:80'), {
    kind: 'address',
    scheme: 'http',
    host: '192.0.2.1',
    port: 80,
  });
});

test('rejects loopback, link-local and multicast proxy targets, and IPv6 forms of such IPv4 addresses', () => {
  assert.throws(() => target(apiResources.pods, 'host'), /address not allowed/);
  for (const [range, hosts] of Object.entries({
    'this network': ['0.0.0.0', '0.0.0.1', '0.255.255.255'],
    loopback: ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
    unspecified: ['::', '0::0'],
    'IPv4-compatible': ['::127.0.0.1', '::7f00:1', '::10.0.0.1'],
    'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '0:0:0:0:0:FFFF:169.254.169.254'],
    'IPv4-translated': ['::ffff:0:127.0.0.1'],
    NAT64: ['64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::127.0.0.1', '64:ff9b:1:ffff::a9fe:a9fe'],
    '6to4': ['2002:7f00:1::', '2002:7f00:0001::1', '2002:a9fe:a9fe::1', '192.88.99.1'],
    Teredo: ['2001::7f00:1', '2001:0:1:2:3:4:80ff:fffe'],
    link: ['169.254.169.254', 'fe80::1', 'febf::1', 'fec0::1'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
    reserved: ['240.0.0.1', '255.255.255.255', '100::1'],
    zones: ['fe80::1%lo', '2001:db8::1%lo', '2001:db8::1%1'],
    'no address': [
      '',
      'name',
      'localhost',
      '127.1',
      '2130706433',
      '0x7f000001',
      '127.0.0.1 ',
      '[::1]',
      '10.0.0.01',
    ],
  }))
    for (const host of hosts)
      assert.throws(() => allowedAddress(host), /address not allowed/, `${range}: ${host}`);
});

test('accepts plain IP addresses of hosts as proxy targets', () => {
  const hosts = ['1.0.0.1', '10.0.0.1', '126.255.255.255', '128.0.0.1', '192.168.1.1', '223.255.255.255'];
  for (const host of [...hosts, '2001:db8::1', 'fd00::1', '2a00::7f00:1', '2001:4860::1', '64:ff9a::1'])
    assert.equal(allowedAddress(host), host);
});

test('rejects malformed names of proxy targets', () => {
  assert.throws(() => target(apiResources.pods, 'ftp:web:90'), /invalid pod request "ftp:web:90"/);
  assert.throws(() => target(apiResources.pods, 'gone'), /pods "gone" not found/);
  assert.throws(() => target(apiResources.pods, 'web:x'), /invalid port x/);
});
