import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DeviceRig, directory, gadget, podOf, signal } from '../../../test/fakes/device-rig.ts';
import { GrpcError } from '../../protocols/grpc/index.ts';

const two = [{ id: 'a' }, { id: 'b' }];

function amountsIn(harness: DeviceRig): string {
  const { capacity, allocatable } = harness.manager.amounts();
  return `${allocatable[gadget]} of ${capacity[gadget]}`;
}

describe('device plugins', () => {
  it('calls GetDevicePluginOptions and ListAndWatch once for each registration of a plugin', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, two);
    assert.deepEqual(plugin.calls, ['getDevicePluginOptions {}', 'listAndWatch']);
    assert.deepEqual(harness.registered, [gadget]);
  });

  it('rejects a plugin with another API version or an invalid resource name with the message of the Go kubelet', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const register = (version: string, resourceName: string) =>
      harness.manager.registerEndpoint({ version, endpoint: 'x.sock', resourceName }, signal);
    await assert.rejects(register('v1', gadget), {
      message: 'requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]',
    });
    for (const name of [
      'gadget',
      'kubernetes.io/gadget',
      'requests.a.b/c',
      'example.com/',
      'example.com/a/b',
    ])
      await assert.rejects(register('v1beta1', name), { message: `the ResourceName "${name}" is invalid` });
    const watched = (name: string, versions: readonly string[]) =>
      harness.manager.register({ name, endpoint: '/x.sock', versions }, signal);
    await assert.rejects(watched(gadget, ['v1alpha', 'v2']), {
      message: 'manager version, v1beta1, is not among plugin supported versions [v1alpha v2]',
    });
    await assert.rejects(watched('gadget', ['v1beta1']), {
      message: 'invalid name of device plugin socket: the ResourceName "gadget" is invalid',
    });
  });

  it('provides no devices of a plugin that does not return its options', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const plugin = harness.host.add(gadget, two);
    plugin.troubles.set('getDevicePluginOptions', GrpcError.fromPeer('UNKNOWN', 'no'));
    await assert.rejects(harness.pass(harness.host.register(plugin)), {
      message: 'failed to get device plugin options: rpc error: code = Unknown desc = no',
    });
    assert.deepEqual(harness.manager.amounts(), { capacity: {}, allocatable: {}, removed: [] });
  });

  it('rejects a plugin that is unreachable for ten seconds', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const plugin = harness.host.add(gadget, two);
    plugin.state = 'gone';
    const registering = harness.host.register(plugin).then(
      () => 'registered',
      (error: Error) => error.message,
    );
    await harness.clock.advance(9_000);
    plugin.state = 'there';
    await harness.clock.advance(1_000);
    assert.equal(await registering, 'registered');
    plugin.state = 'gone';
    const late = harness.host.register(plugin).catch((error: Error) => error.message);
    await harness.clock.advance(10_000);
    assert.match(String(await late), /^failed to dial device plugin: /);
  });

  it('a plugin whose ListAndWatch call fails immediately stays registered without devices, and is not called again', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const plugin = harness.host.add(gadget, two);
    plugin.troubles.set('listAndWatch', GrpcError.fromPeer('UNKNOWN', 'no'));
    await harness.pass(harness.host.register(plugin));
    await harness.clock.advance(200_000);
    assert.equal(amountsIn(harness), '0 of 0');
    assert.equal(plugin.calls.filter((call) => call === 'listAndWatch').length, 1);
  });

  it('does not repeat the ListAndWatch call after the plugin has ended the stream', async () => {
    for (const error of [undefined, GrpcError.fromPeer('UNAVAILABLE', 'I leave')]) {
      await using harness = new DeviceRig();
      const plugin = await harness.startWith(gadget, two);
      plugin.endLists(error);
      await harness.clock.advance(200_000);
      assert.equal(amountsIn(harness), '0 of 2');
      assert.equal(plugin.calls.length, 2);
    }
  });

  it('repeats the ListAndWatch call when only the connection to the plugin was lost', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, two);
    plugin.breakConnections();
    await harness.clock.advance(0);
    assert.equal(amountsIn(harness), '0 of 2');
    await harness.clock.advance(5_000);
    assert.equal(amountsIn(harness), '2 of 2');
    assert.equal(plugin.calls.filter((call) => call === 'listAndWatch').length, 2);
  });

  it('does not call a restarted plugin before it registers', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, two);
    plugin.die();
    plugin.comeBack();
    await harness.clock.advance(100_000);
    assert.equal(amountsIn(harness), '0 of 2');
    await harness.pass(harness.host.register(plugin));
    await harness.clock.advance(1);
    assert.equal(amountsIn(harness), '2 of 2');
  });

  it("keeps the devices of a plugin that has registered again when the plugin's previous connection ends", async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, two);
    await harness.pass(harness.host.register(plugin));
    assert.equal(amountsIn(harness), '2 of 2');
    await harness.clock.advance(10_000);
    assert.equal(plugin.isListenedTo, 1);
    assert.equal(amountsIn(harness), '2 of 2');
    plugin.tell([{ id: 'a' }, { id: 'b', health: 'Unhealthy' }]);
    await harness.clock.advance(0);
    assert.equal(amountsIn(harness), '1 of 2');
  });

  it('removes a plugin that was discovered by its socket when the socket is removed', async () => {
    await using harness = new DeviceRig();
    await harness.start();
    const plugin = harness.host.add(gadget, two);
    const found = { name: gadget, endpoint: `${directory}/${plugin.endpoint}`, versions: ['v1beta1'] };
    await harness.pass(harness.manager.register(found, signal));
    await harness.clock.advance(1);
    assert.equal(amountsIn(harness), '2 of 2');
    harness.manager.deregister({ ...found, endpoint: '/elsewhere' });
    assert.equal(amountsIn(harness), '2 of 2');
    harness.manager.deregister(found);
    assert.equal(amountsIn(harness), '0 of 2');
    await harness.clock.advance(0);
    assert.equal(plugin.isListenedTo, 0);
  });

  it('completes an allocation for a plugin that registers again during the Allocate call', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, two);
    plugin.delaysMs.set('allocate', 500);
    const admitted = harness.admit(podOf('one', 1));
    await harness.pass(harness.host.register(plugin));
    assert.equal(await admitted, undefined);
    assert.deepEqual(harness.devicesOf(podOf('one', 1)), ['a']);
    assert.equal(plugin.calls.filter((call) => call.startsWith('allocate')).length, 1);
  });

  it('allocates all devices to one of two pods that are admitted concurrently', async () => {
    await using harness = new DeviceRig();
    const other = 'example.com/other';
    harness.host.add(other, [{ id: 'x' }]);
    await harness.startWith(gadget, [{ id: 'a' }]);
    const wanting = (name: string, ...resources: readonly string[]) => {
      const pod = podOf(name, 1);
      const containers = resources.map((resource, index) => ({
        name: `c${index}`,
        resources: { limits: { [resource]: '1' } },
      }));
      return { ...pod, spec: { ...pod.spec, containers } };
    };
    const rejections = await Promise.all([
      harness.admit(wanting('one', gadget, other)),
      harness.admit(wanting('two', other, gadget)),
    ]);
    assert.equal(
      rejections.filter((rejection) => rejection === undefined).length,
      1,
      rejections.join(' and '),
    );
  });

  it('allocates other resources while one plugin hangs', async () => {
    await using harness = new DeviceRig();
    harness.host.add('example.com/other', [{ id: 'x' }]);
    const plugin = await harness.startWith(gadget, two);
    plugin.troubles.set('allocate', new GrpcError('CANCELLED', 'never'));
    const other = podOf('other', 1);
    const limits = { 'example.com/other': '1' };
    const spec = { containers: [{ name: 'main', resources: { limits } }] };
    const [, admitted] = await Promise.all([
      harness.admit(podOf('one', 1)),
      harness.admit({ ...other, spec: { ...other.spec, ...spec } }),
    ]);
    assert.equal(admitted, undefined);
  });
});
