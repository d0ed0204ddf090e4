import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf } from '../../test/fakes/pod-sketch.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { podUid } from '../pods/index.ts';
import type { CheckpointEntry } from './checkpoint-entry.ts';
import { hookEntries } from './hook-entries.ts';

const pod = podOf({ source: 'file' });
const { uid } = pod.metadata;

function aNode() {
  const clock = new VirtualClock();
  let notes: CheckpointEntry = { source: 'file', name: 'web', namespace: 'default', boot: '' };
  const hooks = hookEntries({
    clock,
    get: (asked) => (asked === uid ? notes : undefined),
    change: async (_uid, change) => {
      notes = change(notes);
    },
  });
  return { clock, hooks, notes: () => notes };
}

describe('hook checkpoint entries', () => {
  it('lists the containers with an unfinished postStart hook in the order of their start', async () => {
    const { hooks, notes } = aNode();
    await hooks.recordPostStart(pod, 'a');
    assert.deepEqual(hooks.pendingPostStarts(podUid('other')), []);
    await hooks.recordPostStart(pod, 'b');
    await hooks.recordPostStart(pod, 'b');
    assert.deepEqual(hooks.pendingPostStarts(uid), ['a', 'b']);
    await hooks.clearPostStart(pod, 'a');
    assert.deepEqual(hooks.pendingPostStarts(uid), ['b']);
    await hooks.clearPostStart(pod, 'b');
    assert.equal('postStarts' in notes(), false);
  });

  it('stores the start and grace period of a preStop hook until the container has stopped', async () => {
    const { hooks, clock, notes } = aNode();
    await hooks.recordPreStop(pod, 'a', 30);
    await clock.advance(12_000);
    assert.deepEqual(hooks.startedPreStop(uid, 'a'), { usedMs: 12_000, msLeft: 18_000 });
    assert.equal(hooks.startedPreStop(uid, 'b'), undefined);
    await clock.advance(60_000);
    assert.equal(hooks.startedPreStop(uid, 'a')?.msLeft, 1_000);
    await hooks.containerStopped(pod, 'a');
    assert.equal('preStops' in notes(), false);
  });

  it('limits the number of entries when containers exit unobserved', async () => {
    const { hooks, notes } = aNode();
    for (let index = 0; index < 100; index++) {
      await hooks.recordPreStop(pod, `id-${index}`, 30);
      await hooks.recordPostStart(pod, `id-${index}`);
    }
    assert.deepEqual(
      [hooks.pendingPostStarts(uid).length, hooks.pendingPostStarts(uid).at(-1)],
      [32, 'id-99'],
    );
    assert.equal(Object.keys(notes().preStops ?? {}).length, 32);
    assert.notEqual(hooks.startedPreStop(uid, 'id-99'), undefined);
  });
});
