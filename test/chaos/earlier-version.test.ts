import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manifest } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';

it('a static pod edited while no kubelet runs starts only after its previous version has terminated', async () => {
  await using node = await RaceNode.start();
  const first = await node.runsStatic('web', manifest('web', { graceSeconds: 5, onTerm: 'ignore' }));
  await node.restartKubelet(() => node.write('web', manifest('web', { revision: 1 })));
  const second = await node.uidOf('web');
  assert.notEqual(second, first);
  await node.runs(second, 20_000);
  const [ended] = node.of(first, 'container-exited');
  const [started] = node.of(second, 'sandbox-started');
  assert.ok(ended !== undefined && started !== undefined);
  assert.ok(started.atMs >= ended.atMs, `started at ${started.atMs}, the earlier one ended at ${ended.atMs}`);
  const reported = node.kubelet.state.flights
    .find(second)
    .flatMap(({ entries }) => entries.map(({ message }) => message));
  assert.ok(
    reported.includes(`waits until the pod ${first} of the same name has terminated`),
    reported.join('\n'),
  );
  await node.becomesClean(20_000, second);
});
