import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NodeCgroupDeps, type NodeCgroupSettings, nodeCgroups } from './node-cgroups.ts';

test('without pod cgroups, start does nothing and run resolves only when aborted', async () => {
  const settings = { cgroupsPerQos: false } as NodeCgroupSettings;
  const { upkeep, pods } = nodeCgroups(settings, {} as never, {} as NodeCgroupDeps);
  const stop = new AbortController();
  let ended = false;
  const running = upkeep.run(stop.signal).then(() => {
    ended = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(ended, false);
  stop.abort(new Error('enough'));
  await running;
  assert.deepEqual(await pods.list(), new Map());
});
