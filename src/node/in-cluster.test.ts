import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiRig } from '../../test/fakes/api-rig.ts';
import { conditionOf, NodeWorld } from '../../test/fakes/node-world.ts';
import { randomApiFaults } from '../../test/simulator/index.ts';
import { apiResources, Reflector } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { HintLatch, seededRandom } from '../lib/index.ts';
import type { Lease } from './lease.ts';
import { NodeController } from './node-controller.ts';
import { NodeView } from './node-view.ts';
import type { NodeSettings } from './settings.ts';

const nodeRef = { resource: apiResources.nodes, name: 'n1' };
const leaseRef = { resource: apiResources.leases, namespace: 'kube-node-lease', name: 'n1' };

/**
 * The complete node package with a simulated API server that uses node authorization, and a real
 * watch of the Node.
 */
class Cluster {
  readonly rig: ApiRig;
  readonly world = new NodeWorld();
  readonly keeper: NodeController;
  readonly #controller = new AbortController();
  readonly #ended: Promise<unknown>;
  readonly #watch: Reflector<Node>;

  constructor(settings: Partial<NodeSettings> = {}, seed = 1) {
    this.rig = new ApiRig({ seed });
    const common = { clock: this.rig.clock, random: seededRandom(seed), logger: this.world.logs.logger };
    const query = { resource: apiResources.nodes, fieldSelector: 'metadata.name=n1' };
    this.#watch = new Reflector<Node>({ ...common, client: this.rig.node, query });
    this.#watch.start();
    const watched = { current: () => this.#watch.get('n1') };
    this.keeper = new NodeController({
      ...this.world.deps(settings),
      ...common,
      api: this.rig.node,
      view: new NodeView(watched, this.rig.clock),
      hints: new HintLatch(this.rig.clock),
    });
    this.#ended = this.keeper.run(this.#controller.signal).catch((error: unknown) => error);
  }

  get node(): Node | undefined {
    return this.rig.api.object(nodeRef) as Node | undefined;
  }

  get lease(): Lease | undefined {
    return this.rig.api.object(leaseRef) as Lease | undefined;
  }

  async stop(): Promise<void> {
    this.#controller.abort(new Error('stopped'));
    await this.#ended;
    await this.#watch.stop();
    this.rig[Symbol.dispose]();
  }
}

test('the node package sends only permitted requests, and is ready with a lease immediately', async () => {
  const cluster = new Cluster({
    labels: { pool: 'a', 'topology.kubernetes.io/zone': 'z1' },
    taints: [{ key: 'dedicated', effect: 'NoSchedule' }],
  });
  await cluster.rig.clock.advance(1_500);
  assert.equal(conditionOf(cluster.node, 'Ready')?.status, 'True');
  assert.equal(cluster.node?.spec?.taints?.[0]?.key, 'dedicated');
  assert.equal(cluster.lease?.metadata?.ownerReferences?.[0]?.uid, cluster.node?.metadata?.uid);
  cluster.world.pressures.add('memory');
  await cluster.rig.clock.advance(11_000);
  assert.equal(conditionOf(cluster.node, 'MemoryPressure')?.status, 'True');
  assert.doesNotMatch(JSON.stringify([...cluster.world.logs.records]), /forbidden|not allowed/i);
  await cluster.stop();
});

test('recreates a deleted Node after a minute, with a new lease', async () => {
  const cluster = new Cluster();
  await cluster.rig.clock.advance(15_000);
  const before = cluster.node?.metadata?.uid;
  cluster.rig.api.delete(nodeRef);
  await cluster.rig.clock.advance(90_000);
  assert.notEqual(cluster.node?.metadata?.uid, before);
  assert.equal(conditionOf(cluster.node, 'Ready')?.status, 'True');
  assert.equal(cluster.lease?.metadata?.ownerReferences?.[0]?.uid, cluster.node?.metadata?.uid);
  await cluster.stop();
});

test('converges after an API server that failed in every way recovers', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const cluster = new Cluster({ labels: { pool: 'a' } }, seed);
    const { clock, api } = cluster.rig;
    const rates = {
      refuse: 0.1,
      conflict: 0.1,
      unreachable: 0.1,
      hang: 0.05,
      lostAnswer: 0.1,
      lateEffect: 0.05,
      eventLate: 0.1,
      eventDuplicated: 0.1,
      watchCut: 0.1,
      watchGone: 0.05,
    };
    api.setFaults(randomApiFaults({ random: seededRandom(seed), rates }));
    await clock.advance(120_000);
    if (seed % 2 === 0) api.delete(nodeRef);
    cluster.world.pressures.add('disk');
    await clock.advance(120_000);
    api.setFaults(undefined);
    await clock.advance(150_000);
    assert.equal(conditionOf(cluster.node, 'Ready')?.status, 'True', `seed ${seed}`);
    assert.equal(conditionOf(cluster.node, 'DiskPressure')?.status, 'True', `seed ${seed}`);
    assert.equal(cluster.node?.metadata?.labels?.['pool'], 'a', `seed ${seed}`);
    const renewedMs = Date.parse(cluster.lease?.spec?.renewTime ?? '');
    assert.ok(clock.now() - renewedMs <= 11_000, `seed ${seed}`);
    await cluster.stop();
  }
});
