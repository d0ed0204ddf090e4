import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import type { Plugin } from '../../plugins/index.ts';
import { CsiDrivers } from './csi-drivers.ts';
import type { NodeGetInfoResponse } from './gen/node.ts';

const { signal } = new AbortController();
const plugin = (more: Partial<Plugin> = {}): Plugin => ({
  name: 'd.example',
  endpoint: '/csi.sock',
  versions: ['1.0.0'],
  ...more,
});

class World {
  readonly history: string[] = [];
  info: NodeGetInfoResponse = {
    nodeId: 'id',
    maxVolumesPerNode: 3n,
    accessibleTopology: { segments: { zone: 'z' } },
  };
  collision: string | undefined;
  refuse: (why: string) => void = () => assert.fail();
  readonly drivers: CsiDrivers;

  constructor() {
    const clock = new VirtualClock();
    const calls = {
      nodeGetInfo: async () => this.info,
      nodeGetCapabilities: async () => ({ capabilities: [{ rpc: { type: 'STAGE_UNSTAGE_VOLUME' } }] }),
    };
    this.drivers = new CsiDrivers({
      open: (socket) => ({
        client: () => calls as never,
        close: () => void this.history.push(`close ${socket}`),
      }),
      clock,
      logger: collectLogs(clock).logger,
      reporter: {
        collision: () => this.collision,
        installed: (facts, refused) => {
          this.history.push(`installed ${JSON.stringify(facts)}`);
          this.refuse = refused;
        },
        removed: (driver) => void this.history.push(`removed ${driver}`),
      },
      onRejected: ({ name, endpoint }, why) => void this.history.push(`refused ${name} ${endpoint} ${why}`),
      arrived: (driver) => void this.history.push(`arrived ${driver}`),
    });
  }
}

describe('registered CSI drivers', () => {
  it('drivers are queried for their capabilities and node info until they are deregistered', async () => {
    const { drivers, history } = new World();
    await drivers.register(plugin(), signal);
    assert.deepEqual([...drivers.get('d.example').can], ['STAGE_UNSTAGE_VOLUME']);
    drivers.deregister(plugin());
    assert.deepEqual(history, [
      'installed {"driver":"d.example","nodeId":"id","topology":{"zone":"z"},"maxVolumes":3}',
      'arrived d.example',
      'close /csi.sock',
      'removed d.example',
    ]);
    assert.throws(() => drivers.get('d.example'), {
      code: 'CSI_ABSENT',
      message: 'driver name d.example not found in the list of registered CSI drivers',
    });
  });

  it('a driver without a name, a supported version or a node id is rejected', async () => {
    const environment = new World();
    const refused = (more: Partial<Plugin>, why: RegExp) =>
      assert.rejects(environment.drivers.register(plugin(more), signal), {
        code: 'PLUGIN_REFUSED',
        message: why,
      });
    await refused({ name: '' }, /name/);
    await refused({ versions: ['0.3.0', '2.0.0'] }, /0\.3\.0, 2\.0\.0 .* is 1\.x/);
    environment.info = { ...environment.info, nodeId: '' };
    await refused({}, /empty ID/);
    assert.deepEqual(environment.history, ['close /csi.sock']);
  });

  it('a driver is replaced only by a newer version at another socket', async () => {
    const { drivers } = new World();
    await drivers.register(plugin({ versions: ['1.2.0'] }), signal);
    await assert.rejects(
      drivers.register(plugin({ endpoint: '/other.sock', versions: ['1.2'] }), signal),
      /1\.2\.0 is registered already/,
    );
    await drivers.register(plugin({ endpoint: '/other.sock', versions: ['v1.10.0'] }), signal);
    // Deregistering the older registration does not remove the newer one.
    drivers.deregister(plugin());
    assert.equal(drivers.get('d.example').name, 'd.example');
  });

  it('drivers are polled for their volume limit, and only a changed limit is reported', async () => {
    const environment = new World();
    await environment.drivers.register(plugin(), signal);
    await environment.drivers.update('d.example', signal);
    await environment.drivers.update('another', signal);
    environment.info = { nodeId: 'other', maxVolumesPerNode: 9n, accessibleTopology: undefined };
    await environment.drivers.update('d.example', signal);
    assert.deepEqual(environment.history.slice(2), [
      'installed {"driver":"d.example","nodeId":"id","topology":{"zone":"z"},"maxVolumes":9}',
    ]);
  });

  it('a driver that reports no volume limit has none', async () => {
    const environment = new World();
    environment.info = { nodeId: 'id', maxVolumesPerNode: 0n, accessibleTopology: undefined };
    await environment.drivers.register(plugin(), signal);
    assert.equal(environment.history[0], 'installed {"driver":"d.example","nodeId":"id","topology":{}}');
  });

  it('a driver whose topology conflicts with that of the node is rejected, also after its registration', async () => {
    const environment = new World();
    environment.collision = 'detected topology value collision';
    await assert.rejects(environment.drivers.register(plugin(), signal), {
      code: 'PLUGIN_REFUSED',
      message: 'detected topology value collision',
    });
    assert.deepEqual([environment.drivers.names(), environment.history], [[], ['close /csi.sock']]);
    environment.collision = undefined;
    await environment.drivers.register(plugin(), signal);
    assert.deepEqual(environment.drivers.names(), ['d.example']);
    environment.refuse('elsewhere');
    assert.equal(environment.history.at(-1), 'refused d.example /csi.sock elsewhere');
  });
});
