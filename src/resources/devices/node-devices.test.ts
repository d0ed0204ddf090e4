import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gadget, podOf } from '../../../test/fakes/device-rig.ts';
import { memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { SimulatedDevices } from '../../../test/fakes/simulated-devices.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, MetricRegistry, seededRandom } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { NodeDevices } from './node-devices.ts';

const { signal } = new AbortController();
const node = { status: { allocatable: { cpu: '2', [gadget]: '1' } } };

/** A test node whose kubelet can be restarted; the device plugins and the files remain. */
class Rig implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly host = new SimulatedDevices(this.clock);
  readonly metrics = new MetricRegistry({ onError: () => {} });
  readonly ended = new Set<PodUid>();
  readonly devices: NodeDevices;
  readonly #end = new AbortController();
  #running: Promise<unknown> | undefined;

  constructor(files = memoryRuntimeFiles()) {
    this.devices = new NodeDevices({
      rootDir: '/root',
      host: this.host,
      files,
      clock: this.clock,
      random: seededRandom(1),
      logger: collectLogs(this.clock).logger,
      metrics: this.metrics,
      mayUse: (uid) => !this.ended.has(uid),
      isTerminating: () => false,
      isRunningOrFinished: () => false,
      changed: () => {},
    });
  }

  async start(): Promise<void> {
    await this.devices.open();
    this.#running = this.devices.run(this.#end.signal).catch(() => {});
    await this.settle();
  }

  /** Loads the modules that the code under test imports lazily, because imports take real time. */
  async settle(): Promise<void> {
    await import('./index.ts');
    await import('../../pods/validation/index.ts');
    for (let steps = 0; steps < 50; steps++) {
      await settle();
      await this.clock.advance(1);
    }
  }

  async allocate(name: string, count: number): Promise<string | undefined> {
    const allotting = this.devices.allocatePod(podOf(name, count), signal);
    await this.settle();
    return (await allotting)?.message;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('over'));
    await this.#running;
    await this.devices[Symbol.asyncDispose]();
  }
}

describe('the devices of a node', () => {
  it('reports no devices before the first plugin registers', async () => {
    await using rig = new Rig();
    await rig.start();
    const { devices } = rig;
    assert.deepEqual(devices.amounts(), { capacity: {}, allocatable: {}, removed: [] });
    assert.equal(devices.areForgotten, true);
    assert.equal(devices.isRequestedBy(podOf('one', 1)), false);
    assert.equal(await devices.grants(podOf('one', 1), { name: 'main' }, signal), undefined);
  });

  it('counts allocated devices of a pod as allocatable, whatever the Node object contains', async () => {
    await using rig = new Rig();
    rig.host.add(gadget, [{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    await rig.start();
    const { devices } = rig;
    assert.equal(devices.isRequestedBy(podOf('one', 2)), true);
    assert.equal(await rig.allocate('one', 2), undefined);
    assert.equal(devices.areForgotten, false);
    assert.deepEqual(devices.nodeFor(podOf('other', 1), node), node);
    assert.deepEqual(devices.nodeFor(podOf('one', 2), node).status?.allocatable, { cpu: '2', [gadget]: '2' });
    assert.match(await rig.allocate('more', 2).then(String), /Requested: 2, Available: 1/);
    rig.ended.add(podOf('more', 2).metadata.uid).add(podOf('one', 2).metadata.uid);
    devices.free();
    assert.equal(devices.size, 0);
  });

  it('restores devices after a restart, and reports a health change for the pods that have them', async () => {
    const files = memoryRuntimeFiles();
    {
      await using before = new Rig(files);
      before.host.add(gadget, [{ id: 'a' }]);
      await before.start();
      await before.allocate('one', 1);
    }
    await using rig = new Rig(files);
    await rig.devices.open();
    assert.equal(rig.devices.size, 1);
    assert.deepEqual(rig.devices.amounts().capacity, { [gadget]: '0' });
    const plugin = rig.host.add(gadget, [{ id: 'a', health: 'Unhealthy' }]);
    await rig.start();
    assert.equal(await rig.devices.next(signal), podOf('one', 1).metadata.uid);
    const waiting = rig.devices.next(signal);
    plugin.tell([{ id: 'a' }]);
    await rig.settle();
    assert.equal(await waiting, 'one');
    assert.equal(
      rig.devices.statusOf(podOf('one', 1).metadata.uid, 'main')[0]?.resources?.[0]?.health,
      'Healthy',
    );
  });

  it('counts plugin registrations in the metrics of the Go kubelet', async () => {
    await using rig = new Rig();
    rig.host.add(gadget, [{ id: 'a' }]);
    await rig.start();
    await rig.allocate('one', 1);
    const text = await rig.metrics.expose(signal);
    assert.match(
      text,
      /^kubelet_device_plugin_registration_total\{resource_name="example.com\/gadget"\} 1$/m,
    );
    assert.match(
      text,
      /^kubelet_device_plugin_alloc_duration_seconds_count\{resource_name="example.com\/gadget"\} 1$/m,
    );
  });
});
