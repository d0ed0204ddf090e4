import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { FirewallRuleCleaner } from './firewall.ts';

test('removes the firewall rules of sandboxes of previous runs once these sandboxes are deleted, and keeps the rules of new sandboxes', async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  let there = ['running', 'half-stopped'];
  const removed: string[] = [];
  const sweep = new FirewallRuleCleaner({
    clock,
    cri: { listPodSandbox: async () => ({ items: there.map((id) => ({ id })) }) as never },
    rules: {
      sandboxesWithRules: async () => ['running', 'half-stopped', 'cut-short'],
      removeRulesOf: async (ids) => removed.push(...ids),
    },
    print() {},
  });
  await sweep.open(controller.signal);
  const running = sweep.run(controller.signal);
  await clock.advance(1);
  assert.deepEqual(removed, ['cut-short']);
  there = ['running', 'new'];
  await clock.advance(60_000);
  assert.deepEqual(removed, ['cut-short', 'half-stopped']);
  there = ['new'];
  await clock.advance(60_000);
  assert.deepEqual(removed, ['cut-short', 'half-stopped', 'running']);
  await running;
});
