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

/** A node that calls a simulated API server with the permissions of a node. */
class World {
  readonly rig = new ApiRig();
  readonly end = new AbortController();
  readonly logs = collectLogs(this.rig.clock);
  readonly teller: CsiNodePublisher;
  initialized = 0;
  readonly refused: string[] = [];
  /** Whether the registration of drivers is still pending, so that they cannot be rejected yet. */
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

describe('CSI driver publication', () => {
  it('creates a CSINode without drivers that is owned by the Node', async () => {
    await using environment = new World();
    await environment.passes();
    const { metadata, spec } = environment.csiNode() ?? {};
    const uid = environment.node()?.metadata?.uid;
    assert.deepEqual(metadata?.ownerReferences, [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid }]);
    assert.match(
      metadata?.annotations?.['storage.alpha.kubernetes.io/migrated-plugins'] ?? '',
      /^kubernetes\.io\/aws-ebs,.*vsphere-volume$/,
    );
    assert.deepEqual(spec?.drivers, []);
  });

  it('keeps the node NotReady until CSINode exists', async () => {
    await using environment = new World();
    const { api } = environment.rig;
    const node = environment.node();
    api.delete({ resource: nodes, name: 'n1' });
    assert.equal(environment.teller.problem(), 'CSINode is not yet initialized');
    await environment.passes(5_000);
    assert.equal(environment.teller.problem(), 'CSINode is not yet initialized');
    api.put(nodes, { metadata: { name: 'n1', uid: node?.metadata?.uid ?? '' } });
    environment.teller.nodeChanged();
    await environment.passes(100);
    assert.equal(environment.teller.problem(), undefined);
    environment.install(facts);
    await environment.passes();
    assert.equal(environment.initialized, 1);
  });

  it('publishes each driver with its node ID, topology and limit until it is removed', async () => {
    await using environment = new World();
    environment.install(facts);
    await environment.passes();
    assert.deepEqual(environment.csiNode()?.spec.drivers, [
      {
        name: 'd.example',
        nodeID: 'id-1',
        topologyKeys: ['topology.d.example/host', 'topology.d.example/zone'],
        allocatable: { count: 5 },
      },
    ]);
    const annotation = () => environment.node()?.metadata?.annotations?.['csi.volume.kubernetes.io/nodeid'];
    assert.equal(annotation(), '{"d.example":"id-1"}');
    assert.equal(environment.node()?.metadata?.labels?.['topology.d.example/zone'], 'z');
    environment.teller.removed('d.example');
    await environment.passes();
    assert.deepEqual(environment.csiNode()?.spec.drivers, []);
    assert.equal(annotation(), undefined);
    assert.equal(environment.node()?.metadata?.labels?.['topology.d.example/zone'], 'z');
  });

  it('keeps drivers of a previous process that have not registered yet', async () => {
    await using environment = new World();
    await environment.passes();
    const drivers = [{ name: 'early', nodeID: 'e', topologyKeys: [] }];
    environment.rig.api.change({ resource: csiNodes, name: 'n1' }, (found) => ({
      ...found,
      spec: { drivers },
    }));
    environment.install({ ...facts, topology: {}, maxVolumes: undefined });
    await environment.passes();
    assert.deepEqual(
      environment.csiNode()?.spec.drivers.map(({ name }) => name),
      ['early', 'd.example'],
    );
  });

  it('adopts a CSINode whose drivers are null', async () => {
    await using environment = new World();
    await environment.passes();
    const spec = { drivers: null } as never;
    environment.rig.api.change({ resource: csiNodes, name: 'n1' }, (found) => ({ ...found, spec }));
    environment.install({ ...facts, topology: {}, maxVolumes: undefined });
    await environment.passes();
    assert.deepEqual(
      environment.csiNode()?.spec.drivers.map(({ name }) => name),
      ['d.example'],
    );
  });

  it('recreates a CSINode of an earlier Node of the same name', async () => {
    await using environment = new World();
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'old' }];
    environment.rig.api.put(csiNodes, {
      metadata: { name: 'n1', ownerReferences },
      spec: { drivers: [] },
    } as never);
    await environment.passes();
    assert.equal(
      environment.csiNode()?.metadata?.ownerReferences?.[0]?.uid,
      environment.node()?.metadata?.uid,
    );
  });

  it('rejects a driver whose topology conflicts with a Node that is read after the driver has registered', async () => {
    await using environment = new World();
    const node = environment.node();
    environment.rig.api.delete({ resource: nodes, name: 'n1' });
    environment.install({ ...facts, driver: 'first', topology: { host: 'h' } });
    environment.install(facts);
    await environment.passes();
    assert.deepEqual(environment.refused, []);
    const labels = { 'topology.d.example/zone': 'other' };
    environment.rig.api.put(nodes, { metadata: { name: 'n1', uid: node?.metadata?.uid ?? '', labels } });
    environment.teller.nodeChanged();
    await environment.passes(2_000);
    const why =
      'd.example detected topology value collision: driver reported "topology.d.example/zone":"z" but existing label is "topology.d.example/zone":"other"';
    assert.deepEqual(environment.refused, [why]);
    assert.deepEqual(environment.node()?.metadata?.labels, { ...labels, host: 'h' });
    const annotations = environment.node()?.metadata?.annotations;
    assert.equal(annotations?.['csi.volume.kubernetes.io/nodeid'], '{"first":"id-1"}');
    assert.deepEqual(
      environment.csiNode()?.spec.drivers.map(({ name }) => name),
      ['first'],
    );
  });

  it('retries the rejection of a driver until its pending registration has completed', async () => {
    await using environment = new World();
    const labels = { 'topology.d.example/zone': 'other' };
    environment.rig.api.put(nodes, { metadata: { name: 'n1', uid: 'u1', labels } });
    environment.registering = true;
    environment.install(facts);
    await environment.passes();
    assert.deepEqual([environment.refused.length, environment.csiNode()?.spec.drivers ?? []], [1, []]);
    environment.registering = false;
    await environment.passes(2_000);
    assert.deepEqual([environment.refused.length, environment.csiNode()?.spec.drivers], [2, []]);
  });

  it('keeps the topology of a driver when a label is changed by another client', async () => {
    await using environment = new World();
    environment.install(facts);
    await environment.passes();
    environment.rig.api.change({ resource: nodes, name: 'n1' }, ({ metadata, ...node }) => ({
      ...node,
      metadata: { ...metadata, labels: { ...metadata?.labels, 'topology.d.example/zone': 'moved' } },
    }));
    environment.install({ ...facts, maxVolumes: 6 });
    environment.install({ ...facts, driver: 'second', topology: {} });
    await environment.passes();
    assert.deepEqual(environment.refused, []);
    assert.equal(environment.node()?.metadata?.labels?.['topology.d.example/zone'], 'moved');
    assert.equal(environment.csiNode()?.spec.drivers.length, 2);
  });

  it('does not publish a topology that conflicts with labels of the node', async () => {
    await using environment = new World();
    const labels = { 'topology.d.example/zone': 'other' };
    environment.rig.api.change({ resource: nodes, name: 'n1' }, ({ metadata, ...node }) => ({
      ...node,
      metadata: { ...metadata, labels },
    }));
    environment.install(facts);
    await environment.passes();
    assert.equal(environment.node()?.metadata?.labels?.['topology.d.example/zone'], 'other');
    assert.equal(environment.node()?.metadata?.labels?.['topology.d.example/host'], undefined);
    assert.match(environment.refused.join(), /detected topology value collision/);
  });

  it('rejects a driver whose topology conflicts with the labels or with another driver', async () => {
    await using environment = new World();
    environment.rig.api.put(nodes, { metadata: { name: 'n1', uid: 'u1', labels: { zone: 'a' } } });
    const at = (driver: string, topology: Readonly<Record<string, string>>) =>
      environment.teller.collision({ ...facts, driver, topology });
    assert.equal(at('d.example', { zone: 'a', host: 'h' }), undefined);
    const text =
      'detected topology value collision: driver reported "zone":"b" but existing label is "zone":"a"';
    assert.equal(at('d.example', { host: 'h', zone: 'b' }), text);
    environment.install({ ...facts, topology: { host: 'h' } });
    assert.equal(at('d.example', { host: 'i' }), undefined);
    assert.match(at('other', { host: 'i' }) ?? '', /"host":"i" but existing label is "host":"h"$/);
  });
});
