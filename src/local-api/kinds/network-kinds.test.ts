import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindsRig, named } from '../../../test/fakes/kinds-rig.ts';
import { refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { serverResources } from '../api/index.ts';

const { services } = apiResources;
const { endpoints } = serverResources;

test('allocates a clusterIP and keeps it on updates', async () => {
  using harness = new KindsRig();
  const created = await harness.create(services, named('web', { spec: { ports: [{ port: 80 }] } }));
  const { clusterIP, clusterIPs, ports, ...spec } = created.spec as { clusterIP: string } & JsonObject;
  assert.match(clusterIP, /^10\.96\.0\.\d+$/);
  assert.deepEqual(clusterIPs, [clusterIP]);
  assert.deepEqual(ports, [{ port: 80, protocol: 'TCP', targetPort: 80 }]);
  assert.deepEqual(spec, {
    type: 'ClusterIP',
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  });
  assert.deepEqual(created.status, { loadBalancer: {} });
  const again = await harness.update(services, { ...created, spec: { ports: [{ port: 81 }] } });
  assert.equal(again.spec?.['clusterIP'], clusterIP);
  const { message } = await refusedWith(
    harness.update(services, {
      ...again,
      spec: { ...again.spec, clusterIP: '10.96.0.77', clusterIPs: ['10.96.0.77'] },
    }),
    422,
  );
  assert.equal(
    message,
    'Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set',
  );
});

test('rejects a clusterIP that is allocated or out of range', async () => {
  using harness = new KindsRig();
  const at = (name: string, clusterIP: string) =>
    harness.create(services, named(name, { spec: { clusterIP, ports: [{ port: 80 }] } }));
  await at('a', '10.96.0.10');
  const taken = await refusedWith(at('b', '10.96.0.10'), 422);
  assert.equal(
    taken.message,
    'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: provided IP is already allocated',
  );
  await refusedWith(at('c', '10.97.0.10'), 422);
  const none = await refusedWith(at('d', 'nonsense'), 422);
  assert.equal(
    none.message,
    'Service "d" is invalid: spec.clusterIPs[0]: Invalid value: "nonsense": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  );
});

test('validates ExternalName and NodePort services', async () => {
  using harness = new KindsRig();
  const bare = await harness.create(services, named('bare', { spec: { clusterIP: 'None' } }));
  assert.deepEqual(bare.spec?.['clusterIPs'], ['None']);
  const other = await harness.create(
    services,
    named('other', { spec: { type: 'ExternalName', externalName: 'a.b' } }),
  );
  assert.equal(other.spec?.['clusterIP'], undefined);
  const node = await harness.create(
    services,
    named('node', { spec: { type: 'NodePort', ports: [{ port: 80 }] } }),
  );
  const [port] = (node.spec?.['ports'] ?? []) as readonly { readonly nodePort: number }[];
  assert.ok(port !== undefined && port.nodePort >= 30_000 && port.nodePort <= 32_767);
  const plain = await harness.update(services, {
    ...node,
    spec: { ...node.spec, type: 'ClusterIP', externalTrafficPolicy: undefined },
  });
  assert.deepEqual(plain.spec?.['ports'], [{ port: 80, protocol: 'TCP', targetPort: 80 }]);
});

test('validates the ports of a service', async () => {
  using harness = new KindsRig();
  const spec = { ports: [{ port: 80 }, { port: 80, name: 'b' }, { port: 0, name: 'c', protocol: 'X' }] };
  assert.equal(
    await harness.refusal(services, named('s', { spec })),
    'Service "s" is invalid: [spec.ports[0].name: Required value, spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[2].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP", spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}]',
  );
  assert.equal(
    await harness.refusal(services, named('s')),
    'Service "s" is invalid: spec.ports: Required value',
  );
});

test('rejects loopback addresses and empty subsets of endpoints', async () => {
  using harness = new KindsRig();
  const subsets = [{ addresses: [{ ip: '127.0.0.1' }], ports: [{ port: 1 }] }, {}];
  assert.equal(
    await harness.refusal(endpoints, named('e', { subsets })),
    'Endpoints "e" is invalid: [subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128), subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`]',
  );
});
