import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';

const minutes = 5;
/**
 * The maximum number of runtime calls on an idle node: one relist and one housekeeping round every
 * half minute, and one status query per minute for each of two pods.
 */
const mostListings = minutes * (2 + 2 + 2) + 5;

test('sends few runtime calls on an idle node, and still notices changes', async () => {
  await using node = await RaceNode.start();
  for (const name of ['one', 'two']) await node.runsStatic(name, manifest(name));
  await node.pass(60_000);
  assert.equal(node.kubelet.runtime.pleg.eventTrust, 'trusted');
  let listings = 0;
  node.toll = {
    before: ({ method }) => {
      if (method === 'listPodSandbox') listings++;
      return undefined;
    },
  };
  await node.pass(minutes * 60_000);
  assert.ok(listings <= mostListings, `${listings} listings in ${minutes} minutes`);
  node.remove('one');
  await node.until(
    'all pod state is released',
    () => node.kubelet.endpoints.entryCounts()['workers.pods'] === 1,
    5_000,
  );
});
