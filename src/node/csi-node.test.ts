import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiRig } from '../../test/fakes/api-rig.ts';
import { apiResources } from '../api/index.ts';
import type { CSINode, Node } from '../kinds/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { CsiNodePublisher, type DriverOnNode } from './csi-node.ts';

const { nodes, csiNodes } = apiResources;
const facts: DriverOnNode = {
  driver: 'd.example',
  nodeId: 'id-1',
  topology: { 'topology.d.example/zone': 'z', 'topology.d.example/host': 'h' },
  maxVolumes: 5,
};

/** A node with its own permissions at a simulated API. */
class World {
  readonly rig = new ApiRig();
  readonly end = new AbortController();
  readonly logs = collectLogs(this.rig.clock);
  readonly teller: CsiNodePublisher;
  initialized = 0;
  readonly refused: string[] = [];
  /** Whether the registration of drivers is still pending, so that they cannot be deregistered. */
  registering = false;
  readonly #running: Promise<void>;

  constructor(uid = 'u1') {
    const { rig } = this;
    rig.api.put(nodes, { metadata: { name: 'n1', uid } });
    this.teller = new CsiNodePublisher({
      api: rig.node,
      nodeName: 'n1',
      node: () => this.node(),
      clock: rig.clock,
      random: seededRandom(1),
      logger: this.logs.logger,
      initialized: () => {
        this.initialized++;
      },
    });
    this.#running = this.teller.run(this.end.signal).catch(() => {});
  }

  install(driver: DriverOnNode): void {
    this.teller.installed(driver, (why) => {
      this.refused.push(`${driver.driver} ${why}`);
      if (!this.registering) this.teller.removed(driver.driver);
    });
  }

  node(): Node | undefined {
    return this.rig.api.object({ resource: nodes, name: 'n1' }) as Node | undefined;
  }

  csiNode(): CSINode | undefined {
    return this.rig.api.object({ resource: csiNodes, name: 'n1' }) as unknown as CSINode | undefined;
  }

  async passes(ms = 100): Promise<void> {
    await this.rig.clock.advance(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort(new Error('over'));
    await this.#running;
    this.rig[Symbol.dispose]();
  }
}

describe('publishing the CSI drivers of a node', () => {
  it('creates a CSINode without drivers that is owned by the Node', async () => {
    await using world = new World();
    await world.passes();
    const { metadata, spec } = world.csiNode() ?? {};
    const uid = world.node()?.metadata?.uid;
    assert.deepEqual(metadata?.ownerReferences, [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid }]);
    assert.match(
      metadata?.annotations?.['storage.alpha.kubernetes.io/migrated-plugins'] ?? '',
      /^kubernetes\.io\/aws-ebs,.*vsphere-volume$/,
    );
    assert.deepEqual(spec?.drivers, []);
  });

  it('keeps the node NotReady until CSINode exists', async () => {
    await using world = new World();
    const { api } = world.rig;
    const node = world.node();
    api.delete({ resource: nodes, name: 'n1' });
    assert.equal(world.teller.problem(), 'CSINode is not yet initialized');
    await world.passes(5_000);
    assert.equal(world.teller.problem(), 'CSINode is not yet initialized');
    api.put(nodes, { metadata: { name: 'n1', uid: node?.metadata?.uid ?? '' } });
    world.teller.nodeChanged();
    await world.passes(100);
    assert.equal(world.teller.problem(), undefined);
    world.install(facts);
    await world.passes();
    assert.equal(world.initialized, 1);
  });

  it('publishes each driver with its node ID, topology and limit until it is removed', async () => {
    await using world = new World();
    world.install(facts);
    await world.passes();
    assert.deepEqual(world.csiNode()?.spec.drivers, [
      {
        name: 'd.example',
        nodeID: 'id-1',
        topologyKeys: ['topology.d.example/host', 'topology.d.example/zone'],
        allocatable: { count: 5 },
      },
    ]);
    const annotation = () => world.node()?.metadata?.annotations?.['csi.volume.kubernetes.io/nodeid'];
    assert.equal(annotation(), '{"d.example":"id-1"}');
    assert.equal(world.node()?.metadata?.labels?.['topology.d.example/zone'], 'z');
    world.teller.removed('d.example');
    await world.passes();
    assert.deepEqual(world.csiNode()?.spec.drivers, []);
    assert.equal(annotation(), undefined);
    assert.equal(world.node()?.metadata?.labels?.['topology.d.example/zone'], 'z');
  });

  it('keeps drivers of a previous process that have not registered yet', async () => {
    await using world = new World();
    await world.passes();
    const drivers = [{ name: 'early', nodeID: 'e', topologyKeys: [] }];
    world.rig.api.change({ resource: csiNodes, name: 'n1' }, (found) => ({ ...found, spec: { drivers } }));
    world.install({ ...facts, topology: {}, maxVolumes: undefined });
    await world.passes();
    assert.deepEqual(
      world.csiNode()?.spec.drivers.map(({ name }) => name),
      ['early', 'd.example'],
    );
  });

  it('adopts a CSINode with null drivers', async () => {
    await using world = new World();
    await world.passes();
    const spec = { drivers: null } as never;
    world.rig.api.change({ resource: csiNodes, name: 'n1' }, (found) => ({ ...found, spec }));
    world.install({ ...facts, topology: {}, maxVolumes: undefined });
    await world.passes();
    assert.deepEqual(
      world.csiNode()?.spec.drivers.map(({ name }) => name),
      ['d.example'],
    );
  });

  it('recreates a CSINode of an earlier Node of the same name', async () => {
    await using world = new World();
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'old' }];
    world.rig.api.put(csiNodes, {
      metadata: { name: 'n1', ownerReferences },
      spec: { drivers: [] },
    } as never);
    await world.passes();
    assert.equal(world.csiNode()?.metadata?.ownerReferences?.[0]?.uid, world.node()?.metadata?.uid);
  });

  it('publishes nothing of a driver whose topology turns out to conflict', async () => {
    await using world = new World();
    const node = world.node();
    world.rig.api.delete({ resource: nodes, name: 'n1' });
    world.install({ ...facts, driver: 'first', topology: { host: 'h' } });
    world.install(facts);
    await world.passes();
    assert.deepEqual(world.refused, []);
    const labels = { 'topology.d.example/zone': 'other' };
    world.rig.api.put(nodes, { metadata: { name: 'n1', uid: node?.metadata?.uid ?? '', labels } });
    world.teller.nodeChanged();
    await world.passes(2_000);
    const why =
      'd.example detected topology value collision: driver reported "topology.d.example/zone":"z" but existing label is "topology.d.example/zone":"other"';
    assert.deepEqual(world.refused, [why]);
    assert.deepEqual(world.node()?.metadata?.labels, { ...labels, host: 'h' });
    const annotations = world.node()?.metadata?.annotations;
    assert.equal(annotations?.['csi.volume.kubernetes.io/nodeid'], '{"first":"id-1"}');
    assert.deepEqual(
      world.csiNode()?.spec.drivers.map(({ name }) => name),
      ['first'],
    );
  });

  it('retries until a driver with a pending registration can be rejected', async () => {
    await using world = new World();
    const labels = { 'topology.d.example/zone': 'other' };
    world.rig.api.put(nodes, { metadata: { name: 'n1', uid: 'u1', labels } });
    world.registering = true;
    world.install(facts);
    await world.passes();
    assert.deepEqual([world.refused.length, world.csiNode()?.spec.drivers ?? []], [1, []]);
    world.registering = false;
    await world.passes(2_000);
    assert.deepEqual([world.refused.length, world.csiNode()?.spec.drivers], [2, []]);
  });

  it('keeps the topology when a label is changed by another client', async () => {
    await using world = new World();
    world.install(facts);
    await world.passes();
    world.rig.api.change({ resource: nodes, name: 'n1' }, ({ metadata, ...node }) => ({
      ...node,
      metadata: { ...metadata, labels: { ...metadata?.labels, 'topology.d.example/zone': 'moved' } },
    }));
    world.install({ ...facts, maxVolumes: 6 });
    world.install({ ...facts, driver: 'second', topology: {} });
    await world.passes();
    assert.deepEqual(world.refused, []);
    assert.equal(world.node()?.metadata?.labels?.['topology.d.example/zone'], 'moved');
    assert.equal(world.csiNode()?.spec.drivers.length, 2);
  });

  it('does not publish a topology that conflicts with labels of the node', async () => {
    await using world = new World();
    const labels = { 'topology.d.example/zone': 'other' };
    world.rig.api.change({ resource: nodes, name: 'n1' }, ({ metadata, ...node }) => ({
      ...node,
      metadata: { ...metadata, labels },
    }));
    world.install(facts);
    await world.passes();
    assert.equal(world.node()?.metadata?.labels?.['topology.d.example/zone'], 'other');
    assert.equal(world.node()?.metadata?.labels?.['topology.d.example/host'], undefined);
    assert.match(world.refused.join(), /detected topology value collision/);
  });

  it('rejects a driver whose topology conflicts with the labels or with another driver', async () => {
    await using world = new World();
    world.rig.api.put(nodes, { metadata: { name: 'n1', uid: 'u1', labels: { zone: 'a' } } });
    const at = (driver: string, topology: Readonly<Record<string, string>>) =>
      world.teller.collision({ ...facts, driver, topology });
    assert.equal(at('d.example', { zone: 'a', host: 'h' }), undefined);
    const text =
      'detected topology value collision: driver reported "zone":"b" but existing label is "zone":"a"';
    assert.equal(at('d.example', { host: 'h', zone: 'b' }), text);
    world.install({ ...facts, topology: { host: 'h' } });
    assert.equal(at('d.example', { host: 'i' }), undefined);
    assert.match(at('other', { host: 'i' }) ?? '', /"host":"i" but existing label is "host":"h"$/);
  });
});
