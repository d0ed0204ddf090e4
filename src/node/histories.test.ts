import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { pick, type Random, randomInt, seededRandom } from '../lib/index.ts';
import { NodeController } from './node-controller.ts';

const minutes = 60_000;
const statuses = [409, 429, 500, 503];

/** Faults of a node in a cluster; each reverts an earlier one of its kind. */
const strokes: readonly ((world: NodeWorld, random: Random) => void)[] = [
  (world) => world.api.remove(),
  (world) => world.api.put(apiResources.nodes, { metadata: { name: 'n1' } }),
  (world) => {
    world.problems = ['container runtime is down'];
  },
  (world) => {
    world.problems = [];
  },
  (world, random) => {
    const share = random.next() * 0.6;
    world.api.refuse = () =>
      random.next() < share ? refusal(pick(random, statuses) ?? 500, 'no') : undefined;
  },
  (world, random) => {
    const share = random.next() * 0.4;
    world.api.lose = () => (random.next() < share ? refusal(504, 'lost') : undefined);
  },
  (world) => {
    world.api.refuse = () => refusal(503, 'away');
  },
  (world) => calm(world),
  (world) => void (world.pressures.delete('disk') || world.pressures.add('disk')),
  (world, random) => world.clock.jumpWall((random.next() - 0.5) * 10 * minutes),
  (world) => {
    const stale = structuredClone(world.api.node());
    world.watched = () => stale;
  },
  (world) => {
    world.watched = () => world.api.node();
  },
];

function calm(world: NodeWorld): void {
  world.api.refuse = () => undefined;
  world.api.lose = () => undefined;
  world.watched = () => world.api.node();
  world.problems = [];
}

function check(node: Node | undefined, world: NodeWorld, seed: number): void {
  const what = `seed ${seed}`;
  assert.equal(conditionOf(node, 'Ready')?.status, 'True', what);
  assert.equal(
    conditionOf(node, 'DiskPressure')?.status,
    world.pressures.has('disk') ? 'True' : 'False',
    what,
  );
  assert.equal(node?.metadata?.labels?.['pool'], 'a', what);
  const lease = world.api.lease();
  assert.equal(lease?.metadata?.ownerReferences?.[0]?.uid, node?.metadata?.uid, what);
  assert.ok(world.clock.now() - Date.parse(lease?.spec?.renewTime ?? '') <= 11_000, what);
}

async function history(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const world = new NodeWorld();
  world.watched = () => world.api.node();
  const keeper = new NodeController({ ...world.deps({ labels: { pool: 'a' } }), random });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).catch((error: unknown) => error);
  for (let step = 0; step < 12; step++) {
    await world.clock.advance(randomInt(random, 90_000));
    pick(random, strokes)?.(world, random);
  }
  calm(world);
  await world.clock.advance(2 * minutes);
  check(world.api.node(), world, seed);
  const calls = world.api.calls.length;
  await world.clock.advance(minutes);
  assert.ok(
    world.api.calls.length - calls <= 8,
    `seed ${seed}: at rest there are little more than lease renewals`,
  );
  const reason = new Error('stopped');
  controller.abort(reason);
  assert.equal(await ended, reason, `seed ${seed}`);
  assert.equal(world.clock.pendingTimers, 0, `seed ${seed}`);
}

test('converges to the desired Node and little traffic after any faults', async () => {
  for (let seed = 1; seed <= 20; seed++) await history(seed);
});
