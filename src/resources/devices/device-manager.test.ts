import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { container, DeviceRig, gadget, podOf, signal } from '../../../test/fakes/device-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { podUid } from '../../pods/index.ts';
import { GrpcError } from '../../protocols/grpc/index.ts';

const three = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
const failed = (why: string) => `Allocate failed due to ${why}, which is unexpected`;
const sidecar = { restartPolicy: 'Always' };

describe('device manager', () => {
  it('allocates each device to one pod only, until none is free', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const [one, two, third] = [podOf('one', 2), podOf('two', 1), podOf('three', 1)];
    assert.deepEqual([await harness.admit(one), await harness.admit(two)], [undefined, undefined]);
    assert.deepEqual([harness.devicesOf(one), harness.devicesOf(two)], [['a', 'b'], ['c']]);
    const why = `requested number of devices unavailable for ${gadget}. Requested: 1, Available: 0`;
    assert.equal(await harness.admit(third), failed(why));
    harness.ended.add(one.metadata.uid);
    assert.equal(await harness.admit(podOf('four', 2)), undefined);
  });

  it('reports healthy devices as allocatable and all devices as capacity', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, [{ id: 'a' }, { id: 'b', health: 'Unhealthy' }]);
    const is = () => {
      const { capacity, allocatable, removed } = harness.manager.amounts();
      return `${allocatable[gadget]} of ${capacity[gadget]}${removed.length === 0 ? '' : ' removed'}`;
    };
    assert.equal(is(), '1 of 2');
    plugin.tell(three);
    await harness.clock.advance(0);
    assert.equal(is(), '3 of 3');
    plugin.die();
    await harness.clock.advance(0);
    assert.equal(is(), '0 of 3');
    await harness.clock.advance(299_000);
    assert.equal(is(), '0 of 3');
    const { changes } = harness;
    await harness.clock.advance(1_000);
    assert.equal(is(), 'undefined of undefined removed');
    assert.equal(harness.changes, changes + 1);
    plugin.comeBack();
    await harness.pass(harness.host.register(plugin));
    await harness.clock.advance(1);
    assert.equal(is(), '3 of 3');
  });

  it('later containers reuse the devices of an init container, but not those of a sidecar', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const pod = aPod({
      spec: {
        initContainers: [container('init', 2), container('side', 1, sidecar), container('later', 1)],
        containers: [container('main', 1), container('other', 1)],
      },
    });
    assert.equal(await harness.admit(pod), undefined);
    const of = (name: string) => harness.devicesOf(pod, name).join('');
    assert.deepEqual(['init', 'side', 'later', 'main', 'other'].map(of), ['ab', 'a', 'b', 'b', 'c']);
    assert.equal(
      await harness.admit(podOf('next', 1)),
      failed(`requested number of devices unavailable for ${gadget}. Requested: 1, Available: 0`),
    );
  });

  it('allocates the devices that the plugin prefers, as far as they are free', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three, { getPreferredAllocationAvailable: true });
    plugin.preferred = ['c', 'nonsense', 'b'];
    const pod = podOf('one', 1);
    await harness.admit(pod);
    assert.deepEqual(harness.devicesOf(pod), ['c']);
    const [question = ''] = plugin.calls.filter((call) => call.startsWith('getPreferredAllocation'));
    assert.deepEqual(JSON.parse(question.slice(question.indexOf('{'))), {
      containerRequests: [
        { availableDeviceIDs: ['a', 'b', 'c'], mustIncludeDeviceIDs: [], allocationSize: 1 },
      ],
    });
    plugin.troubles.set('getPreferredAllocation', GrpcError.fromPeer('INTERNAL', 'no idea'));
    const why =
      'device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Internal desc = no idea';
    assert.equal(await harness.admit(podOf('two', 1)), failed(why));
  });

  it('takes devices from the NUMA nodes of the affinity first, then from other NUMA nodes, then devices without a NUMA node', async () => {
    await using harness = new DeviceRig();
    const placed = [
      { id: 'nowhere' },
      { id: 'far', numaNodes: [1] },
      { id: 'near', numaNodes: [0] },
      { id: 'both', numaNodes: [0, 1] },
    ];
    await harness.startWith(gadget, placed);
    const affinity = { numaNodes: [0], preferred: true };
    const [one, two] = [podOf('one', 1), podOf('two', 2)];
    await harness.admit(one, affinity);
    await harness.admit(two, affinity);
    assert.deepEqual([harness.devicesOf(one), harness.devicesOf(two)], [['near'], ['both', 'far']]);
  });

  it('leaves devices free if the plugin rejects the allocation', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, [{ id: 'a' }]);
    plugin.troubles.set('allocate', GrpcError.fromPeer('UNKNOWN', 'not today'));
    assert.equal(await harness.admit(podOf('one', 1)), failed('rpc error: code = Unknown desc = not today'));
    plugin.troubles.clear();
    assert.equal(await harness.admit(podOf('two', 1)), undefined);
  });

  it('reports a health change of a device for the pods that have it', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three);
    const pod = podOf('one', 2);
    await harness.admit(pod);
    plugin.tell([{ id: 'a' }, { id: 'b', health: 'Unhealthy' }, { id: 'c', health: 'Unhealthy' }]);
    await harness.clock.advance(0);
    assert.deepEqual(harness.unwell, [pod.metadata.uid]);
    const health = () => harness.manager.statusOf(pod.metadata.uid, 'main');
    const is = (a: string, b: string) => [
      {
        name: gadget,
        resources: [
          { resourceID: 'a', health: a },
          { resourceID: 'b', health: b },
        ],
      },
    ];
    assert.deepEqual(health(), is('Healthy', 'Unhealthy'));
    plugin.tell([{ id: 'a' }]);
    await harness.clock.advance(0);
    assert.deepEqual(harness.unwell, [pod.metadata.uid, pod.metadata.uid]);
    assert.deepEqual(health(), is('Healthy', 'Unknown'));
    plugin.tell([{ id: 'a' }]);
    await harness.clock.advance(0);
    assert.equal(harness.unwell.length, 2);
  });

  it('calls PreStartContainer before each start of a container with devices, if the plugin requires this call', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three, { preStartRequired: true });
    const pod = podOf('one', 1);
    await harness.admit(pod);
    const grants = () => harness.pass(harness.manager.grants(pod, container('main', 1), signal));
    const { variables = [], annotations } = (await grants()) ?? {};
    assert.deepEqual(
      variables.map(({ name, value }) => `${name}=${value}`),
      [`${gadget}=a`],
    );
    assert.deepEqual(annotations, { [gadget]: 'a' });
    await grants();
    assert.deepEqual(
      plugin.calls.filter((call) => call.startsWith('preStart')),
      Array(2).fill('preStartContainer {"devicesIds":["a"]}'),
    );
    plugin.troubles.set('preStartContainer', GrpcError.fromPeer('UNKNOWN', 'it burns'));
    await assert.rejects(grants(), {
      message:
        'device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = it burns',
    });
    plugin.die();
    await harness.clock.advance(0);
    await assert.rejects(grants(), { message: `endpoint ${gadget} has been stopped` });
  });

  it('allocates devices at the container start if the checkpoint entry of their previous allocation was lost', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const pod = podOf('one', 1);
    const grants = await harness.pass(harness.manager.grants(pod, container('main', 1), signal));
    assert.deepEqual(grants?.annotations, { [gadget]: 'a' });
    assert.deepEqual(harness.devicesOf(pod), ['a']);
  });

  it('waits for the devices of terminating pods if they are sufficient', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const [first, second] = [podOf('first', 2), podOf('second', 1)];
    await harness.admit(first);
    await harness.admit(second);
    const readiness = (count: number, name = 'next') => {
      const is = { state: 'waits' };
      void harness.manager.ready(podOf(name, count), signal).then(() => {
        is.state = 'ready';
      });
      return is;
    };
    const hopeless = readiness(1);
    await harness.clock.advance(0);
    assert.equal(hopeless.state, 'ready');
    harness.ending.add(first.metadata.uid);
    const [waiting, tooMany] = [readiness(2), readiness(3)];
    await harness.clock.advance(5_000);
    assert.deepEqual([waiting.state, tooMany.state], ['waits', 'ready']);
    harness.ended.add(first.metadata.uid);
    await harness.clock.advance(1_000);
    assert.equal(waiting.state, 'ready');
    assert.equal(await harness.admit(podOf('next', 2)), undefined);
    harness.ending.add(second.metadata.uid);
    const late = readiness(1, 'late');
    await harness.clock.advance(29_000);
    assert.equal(late.state, 'waits');
    await harness.clock.advance(1_000);
    assert.equal(late.state, 'ready');
  });

  it('ignores extended resources without a device plugin', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const pod = podOf('one', 1);
    assert.equal(harness.manager.isRequestedBy(pod), false);
    assert.equal(await harness.admit(pod), undefined);
    assert.equal(await harness.manager.grants(pod, container('main', 1), signal), undefined);
  });

  it('allocates no plugin devices for the extended resources of a resource claim', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const requestMappings = [{ containerName: 'main', resourceName: gadget, requestName: 'r' }];
    const pod = aPod({
      metadata: { uid: podUid('claimed') },
      spec: { containers: [container('main', 1)] },
      status: { extendedResourceClaimStatus: { requestMappings, resourceClaimName: 'c' } },
    });
    assert.equal(harness.manager.isRequestedBy(pod), false);
  });
});
