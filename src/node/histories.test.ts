import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { pick, type Random, randomInt, seededRandom } from '../lib/index.ts';
import { NodeController } from './node-controller.ts';

const minutes = 60_000;
const statuses = [409, 429, 500, 503];

/**
 * The faults that the test chooses from at random, in the node and its cluster; some of them revert
 * an earlier fault.
 */
const strokes: readonly ((environment: NodeWorld, random: Random) => void)[] = [
  (environment) => environment.api.remove(),
  (environment) => environment.api.put(apiResources.nodes, { metadata: { name: 'n1' } }),
  (environment) => {
    environment.problems = ['container runtime is down'];
  },
  (environment) => {
    environment.problems = [];
  },
  (environment, random) => {
    const share = random.next() * 0.6;
    environment.api.refuse = () =>
      random.next() < share ? refusal(pick(random, statuses) ?? 500, 'no') : undefined;
  },
  (environment, random) => {
    const share = random.next() * 0.4;
    environment.api.lose = () => (random.next() < share ? refusal(504, 'lost') : undefined);
  },
  (environment) => {
    environment.api.refuse = () => refusal(503, 'away');
  },
  (environment) => calm(environment),
  (environment) => void (environment.pressures.delete('disk') || environment.pressures.add('disk')),
  (environment, random) => environment.clock.jumpWall((random.next() - 0.5) * 10 * minutes),
  (environment) => {
    const stale = structuredClone(environment.api.node());
    environment.watched = () => stale;
  },
  (environment) => {
    environment.watched = () => environment.api.node();
  },
];

function calm(environment: NodeWorld): void {
  environment.api.refuse = () => undefined;
  environment.api.lose = () => undefined;
  environment.watched = () => environment.api.node();
  environment.problems = [];
}

function check(node: Node | undefined, environment: NodeWorld, seed: number): void {
  const what = `seed ${seed}`;
  assert.equal(conditionOf(node, 'Ready')?.status, 'True', what);
  assert.equal(
    conditionOf(node, 'DiskPressure')?.status,
    environment.pressures.has('disk') ? 'True' : 'False',
    what,
  );
  assert.equal(node?.metadata?.labels?.['pool'], 'a', what);
  const lease = environment.api.lease();
  assert.equal(lease?.metadata?.ownerReferences?.[0]?.uid, node?.metadata?.uid, what);
  assert.ok(environment.clock.now() - Date.parse(lease?.spec?.renewTime ?? '') <= 11_000, what);
}

async function history(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const environment = new NodeWorld();
  environment.watched = () => environment.api.node();
  const keeper = new NodeController({ ...environment.deps({ labels: { pool: 'a' } }), random });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).catch((error: unknown) => error);
  for (let step = 0; step < 12; step++) {
    await environment.clock.advance(randomInt(random, 90_000));
    pick(random, strokes)?.(environment, random);
  }
  calm(environment);
  await environment.clock.advance(2 * minutes);
  check(environment.api.node(), environment, seed);
  const calls = environment.api.calls.length;
  await environment.clock.advance(minutes);
  assert.ok(
    environment.api.calls.length - calls <= 8,
    `seed ${seed}: at rest there are little more than lease renewals`,
  );
  const reason = new Error('stopped');
  controller.abort(reason);
  assert.equal(await ended, reason, `seed ${seed}`);
  assert.equal(environment.clock.pendingTimers, 0, `seed ${seed}`);
}

test('converges to the desired Node with little traffic after random faults', async () => {
  for (let seed = 1; seed <= 20; seed++) await history(seed);
});
