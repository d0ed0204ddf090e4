import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DeviceRig, directory, gadget, podOf, signal } from '../../../test/fakes/device-rig.ts';
import { GrpcError } from '../../protocols/grpc/index.ts';

const two = [{ id: 'a' }, { id: 'b' }];

function amountsIn(rig: DeviceRig): string {
  const { capacity, allocatable } = rig.manager.amounts();
  return `${allocatable[gadget]} of ${capacity[gadget]}`;
}

describe('device plugins', () => {
  it('are asked for their options and followed, once per registration', async () => {
    await using rig = new DeviceRig();
    const plugin = await rig.startWith(gadget, two);
    assert.deepEqual(plugin.calls, ['getDevicePluginOptions {}', 'listAndWatch']);
    assert.deepEqual(rig.registered, [gadget]);
  });

  it('with another version or an invalid resource name are rejected with the upstream message', async () => {
    await using rig = new DeviceRig();
    await rig.start();
    const register = (version: string, resourceName: string) =>
      rig.manager.registerEndpoint({ version, endpoint: 'x.sock', resourceName }, signal);
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
      rig.manager.register({ name, endpoint: '/x.sock', versions }, signal);
    await assert.rejects(watched(gadget, ['v1alpha', 'v2']), {
      message: 'manager version, v1beta1, is not among plugin supported versions [v1alpha v2]',
    });
    await assert.rejects(watched('gadget', ['v1beta1']), {
      message: 'invalid name of device plugin socket: the ResourceName "gadget" is invalid',
    });
  });

  it('that do not return their options provide no devices', async () => {
    await using rig = new DeviceRig();
    await rig.start();
    const plugin = rig.host.add(gadget, two);
    plugin.troubles.set('getDevicePluginOptions', GrpcError.fromPeer('UNKNOWN', 'no'));
    await assert.rejects(rig.pass(rig.host.register(plugin)), {
      message: 'failed to get device plugin options: rpc error: code = Unknown desc = no',
    });
    assert.deepEqual(rig.manager.amounts(), { capacity: {}, allocatable: {}, removed: [] });
  });

  it('that are unreachable for ten seconds are rejected', async () => {
    await using rig = new DeviceRig();
    await rig.start();
    const plugin = rig.host.add(gadget, two);
    plugin.state = 'gone';
    const registering = rig.host.register(plugin).then(
      () => 'registered',
      (error: Error) => error.message,
    );
    await rig.clock.advance(9_000);
    plugin.state = 'there';
    await rig.clock.advance(1_000);
    assert.equal(await registering, 'registered');
    plugin.state = 'gone';
    const late = rig.host.register(plugin).catch((error: Error) => error.message);
    await rig.clock.advance(10_000);
    assert.match(String(await late), /^failed to dial device plugin: /);
  });

  it('whose list call fails immediately are kept without devices and not called again', async () => {
    await using rig = new DeviceRig();
    await rig.start();
    const plugin = rig.host.add(gadget, two);
    plugin.troubles.set('listAndWatch', GrpcError.fromPeer('UNKNOWN', 'no'));
    await rig.pass(rig.host.register(plugin));
    await rig.clock.advance(200_000);
    assert.equal(amountsIn(rig), '0 of 0');
    assert.equal(plugin.calls.filter((call) => call === 'listAndWatch').length, 1);
  });

  it('that end their list stream are not called again', async () => {
    for (const error of [undefined, GrpcError.fromPeer('UNAVAILABLE', 'I leave')]) {
      await using rig = new DeviceRig();
      const plugin = await rig.startWith(gadget, two);
      plugin.endLists(error);
      await rig.clock.advance(200_000);
      assert.equal(amountsIn(rig), '0 of 2');
      assert.equal(plugin.calls.length, 2);
    }
  });

  it('that lost only their connection are called again', async () => {
    await using rig = new DeviceRig();
    const plugin = await rig.startWith(gadget, two);
    plugin.breakConnections();
    await rig.clock.advance(0);
    assert.equal(amountsIn(rig), '0 of 2');
    await rig.clock.advance(5_000);
    assert.equal(amountsIn(rig), '2 of 2');
    assert.equal(plugin.calls.filter((call) => call === 'listAndWatch').length, 2);
  });

  it('that were restarted are not called before they register', async () => {
    await using rig = new DeviceRig();
    const plugin = await rig.startWith(gadget, two);
    plugin.die();
    plugin.comeBack();
    await rig.clock.advance(100_000);
    assert.equal(amountsIn(rig), '0 of 2');
    await rig.pass(rig.host.register(plugin));
    await rig.clock.advance(1);
    assert.equal(amountsIn(rig), '2 of 2');
  });

  it('that register again lose nothing when their previous connection ends', async () => {
    await using rig = new DeviceRig();
    const plugin = await rig.startWith(gadget, two);
    await rig.pass(rig.host.register(plugin));
    assert.equal(amountsIn(rig), '2 of 2');
    await rig.clock.advance(10_000);
    assert.equal(plugin.isListenedTo, 1);
    assert.equal(amountsIn(rig), '2 of 2');
    plugin.tell([{ id: 'a' }, { id: 'b', health: 'Unhealthy' }]);
    await rig.clock.advance(0);
    assert.equal(amountsIn(rig), '1 of 2');
  });

  it('discovered by their sockets are removed with them', async () => {
    await using rig = new DeviceRig();
    await rig.start();
    const plugin = rig.host.add(gadget, two);
    const found = { name: gadget, endpoint: `${directory}/${plugin.endpoint}`, versions: ['v1beta1'] };
    await rig.pass(rig.manager.register(found, signal));
    await rig.clock.advance(1);
    assert.equal(amountsIn(rig), '2 of 2');
    rig.manager.deregister({ ...found, endpoint: '/elsewhere' });
    assert.equal(amountsIn(rig), '2 of 2');
    rig.manager.deregister(found);
    assert.equal(amountsIn(rig), '0 of 2');
    await rig.clock.advance(0);
    assert.equal(plugin.isListenedTo, 0);
  });

  it('that register again during a call are called again', async () => {
    await using rig = new DeviceRig();
    const plugin = await rig.startWith(gadget, two);
    plugin.delaysMs.set('allocate', 500);
    const admitted = rig.admit(podOf('one', 1));
    await rig.pass(rig.host.register(plugin));
    assert.equal(await admitted, undefined);
    assert.deepEqual(rig.devicesOf(podOf('one', 1)), ['a']);
    assert.equal(plugin.calls.filter((call) => call.startsWith('allocate')).length, 1);
  });

  it('allocate all devices to one of two concurrent pods', async () => {
    await using rig = new DeviceRig();
    const other = 'example.com/other';
    rig.host.add(other, [{ id: 'x' }]);
    await rig.startWith(gadget, [{ id: 'a' }]);
    const wanting = (name: string, ...resources: readonly string[]) => {
      const pod = podOf(name, 1);
      const containers = resources.map((resource, index) => ({
        name: `c${index}`,
        resources: { limits: { [resource]: '1' } },
      }));
      return { ...pod, spec: { ...pod.spec, containers } };
    };
    const rejections = await Promise.all([
      rig.admit(wanting('one', gadget, other)),
      rig.admit(wanting('two', other, gadget)),
    ]);
    assert.equal(
      rejections.filter((rejection) => rejection === undefined).length,
      1,
      rejections.join(' and '),
    );
  });

  it('that hang do not block the allocation of other resources', async () => {
    await using rig = new DeviceRig();
    rig.host.add('example.com/other', [{ id: 'x' }]);
    const plugin = await rig.startWith(gadget, two);
    plugin.troubles.set('allocate', new GrpcError('CANCELLED', 'never'));
    const other = podOf('other', 1);
    const limits = { 'example.com/other': '1' };
    const spec = { containers: [{ name: 'main', resources: { limits } }] };
    const [, admitted] = await Promise.all([
      rig.admit(podOf('one', 1)),
      rig.admit({ ...other, spec: { ...other.spec, ...spec } }),
    ]);
    assert.equal(admitted, undefined);
  });
});
