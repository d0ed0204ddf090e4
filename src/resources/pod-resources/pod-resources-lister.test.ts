import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { socketFolder } from '../../../test/fakes/socket-folder.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { MetricRegistry, realClock, seededRandom } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import { GrpcChannel, GrpcServer } from '../../protocols/grpc/index.ts';
import { PodResourcesLister } from './gen/pod-resources.ts';
import { type GivenResources, podResourcesMetrics, servePodResources } from './pod-resources-lister.ts';

const { signal } = new AbortController();
const none = { cpuIds: [], memory: [], dynamicResources: [] };
const withSidecar = aPod({
  metadata: { uid: podUid('u1'), name: 'web' },
  spec: {
    initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }],
    containers: [{ name: 'main' }],
  },
});
const over = aPod({ metadata: { uid: podUid('u2'), name: 'over' } });
const claimed = {
  name: 'my-gpu',
  namespace: 'default',
  drivers: new Map([
    [
      'x.com',
      [{ poolName: 'p', deviceName: 'd', shareId: 's', cdiDeviceIds: ['x.com/gpu=d', 'x.com/all=1'] }],
    ],
    ['y.com', [{ poolName: 'q', deviceName: 'e', shareId: undefined, cdiDeviceIds: [] }]],
  ]),
};
const given: GivenResources = {
  devices: {
    of: (uid, container) =>
      uid === 'u1' && container === 'main'
        ? [
            { resource: 'a/b', id: 'both', numaNodes: [0, 1] },
            { resource: 'a/b', id: 'nowhere', numaNodes: [] },
          ]
        : [],
    allocatable: () => [{ resource: 'a/b', id: 'free', numaNodes: [1] }],
  },
  cpus: { of: (_uid, container) => (container === 'side' ? [2, 3] : []), allocatable: () => [0, 1, 2, 3] },
  memory: {
    of: () => [],
    allocatable: () => [{ type: 'memory', bytes: 1024n, numaNodes: [0] }],
  },
  claims: {
    of: (pod, { name }) => (pod === withSidecar && name === 'side' ? [claimed] : []),
  },
};

/** Serves the PodResources API on a real socket. */
async function createHarness(pods: readonly Pod[], active = pods) {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(socketFolder());
  const clock = new VirtualClock();
  const metrics = new MetricRegistry({ onError: () => {} });
  const server = stack.use(new GrpcServer());
  servePodResources(server, {
    clock,
    pods: {
      active: () => active,
      all: () => pods,
      find: (namespace, name) =>
        pods.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
    },
    given: () => given,
    observer: podResourcesMetrics(metrics),
  });
  await server.listen(folder.path('kubelet.sock'));
  const target = `unix://${folder.path('kubelet.sock')}`;
  const channel = stack.use(new GrpcChannel({ target, clock: realClock(), random: seededRandom(1) }));
  const client = channel.client(PodResourcesLister);
  const firstVersion: typeof PodResourcesLister = {
    ...PodResourcesLister,
    fullName: 'v1alpha1.PodResourcesLister',
  };
  const first = channel.client(firstVersion);
  return { clock, metrics, client, first, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const at = (node: bigint) => ({ nodes: [{ ID: node }] });
const entry = (id: string, node?: bigint) => ({
  resourceName: 'a/b',
  deviceIds: [id],
  topology: node === undefined ? undefined : at(node),
});

describe('the PodResources API', () => {
  it('List returns only active pods, with sidecars before other containers, and with one device entry per NUMA node', async () => {
    await using environment = await createHarness([withSidecar, over], [withSidecar]);
    const { podResources } = await environment.client.list({}, { signal });
    const ofX = { driverName: 'x.com', poolName: 'p', deviceName: 'd', shareId: 's' };
    const ofY = { driverName: 'y.com', poolName: 'q', deviceName: 'e', shareId: undefined, cdiDevices: [] };
    const dynamic = {
      claimName: 'my-gpu',
      claimNamespace: 'default',
      claimResources: [{ ...ofX, cdiDevices: [{ name: 'x.com/gpu=d' }, { name: 'x.com/all=1' }] }, ofY],
    };
    const expected = {
      name: 'web',
      namespace: 'default',
      containers: [
        { ...none, name: 'side', devices: [], cpuIds: [2n, 3n], dynamicResources: [dynamic] },
        { ...none, name: 'main', devices: [entry('both', 0n), entry('both', 1n), entry('nowhere')] },
      ],
    };
    assert.deepEqual(podResources, [expected]);
    const one = await environment.client.get({ podNamespace: 'default', podName: 'web' }, { signal });
    assert.deepEqual(one.podResources, expected);
  });

  it('List returns pods without sidecars to v1alpha1 clients', async () => {
    await using environment = await createHarness([withSidecar, over], [withSidecar]);
    const { podResources } = await environment.first.list({}, { signal });
    assert.deepEqual(
      podResources.map(({ name, containers }) => [name, containers.map((each) => each.name)]),
      [
        ['web', ['main']],
        ['over', ['main']],
      ],
    );
    await assert.rejects(environment.first.getAllocatableResources({}, { signal }), {
      grpcCode: 'UNIMPLEMENTED',
    });
  });

  it('Get rejects and counts requests for unknown pods', async () => {
    await using environment = await createHarness([withSidecar]);
    await assert.rejects(environment.client.get({ podNamespace: 'n', podName: 'x' }, { signal }), {
      grpcCode: 'UNKNOWN',
      message: 'pod x in namespace n not found',
    });
    await environment.client.list({}, { signal });
    const text = await environment.metrics.expose(signal);
    for (const line of [
      'requests_total{server_api_version="v1"} 2',
      'requests_get{server_api_version="v1"} 1',
      'errors_get{server_api_version="v1"} 1',
      'requests_list{server_api_version="v1"} 1',
    ])
      assert.ok(text.includes(`kubelet_pod_resources_endpoint_${line}\n`), line);
  });

  it('GetAllocatableResources returns the allocatable resources', async () => {
    await using environment = await createHarness([]);
    assert.deepEqual(await environment.client.getAllocatableResources({}, { signal }), {
      devices: [entry('free', 1n)],
      cpuIds: [0n, 1n, 2n, 3n],
      memory: [{ memoryType: 'memory', size: 1024n, topology: at(0n) }],
    });
  });

  it('allows a hundred PodResources requests per second', async () => {
    await using environment = await createHarness([]);
    const ask = () =>
      environment.client.list({}, { signal }).then(
        () => 'told',
        (error: Error) => error.message,
      );
    const responses = await Promise.all(Array.from({ length: 12 }, ask));
    assert.deepEqual(responses, [...Array(10).fill('told'), ...Array(2).fill('rejected by rate limit')]);
    await environment.clock.advance(10);
    assert.deepEqual([await ask(), await ask()], ['told', 'rejected by rate limit']);
  });
});
