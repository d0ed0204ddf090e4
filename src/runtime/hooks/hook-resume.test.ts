import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import type { LifecycleHandler } from '../../kinds/index.ts';
import { cancelledError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { HookCheckpoint, HookRunner, StartedPreStop } from './lifecycle-hooks.ts';

const ignoring = { script: 'trap "" TERM; sleep 100000' };
const exec = { exec: { command: ['hook'] } };

/**
 * A fake hook checkpoint that records its calls, and returns the hooks that a previous kubelet
 * recorded.
 */
class KeptNotes implements HookCheckpoint {
  readonly told: string[] = [];
  due: readonly string[] = [];
  begun: StartedPreStop | undefined;
  /** The ID of the container whose preStop hook was recorded; any container if undefined. */
  begunId: string | undefined;

  async recordPostStart(_pod: unknown, id: string): Promise<void> {
    this.told.push('due');
    this.due = [...this.due, id];
  }
  async clearPostStart(_pod: unknown, id: string): Promise<void> {
    this.told.push('over');
    this.due = this.due.filter((each) => each !== id);
  }
  pendingPostStarts(): readonly string[] {
    return this.due;
  }
  async recordPreStop(_pod: unknown, _id: string, graceSeconds: number): Promise<void> {
    this.told.push(`preStop ${graceSeconds}`);
  }
  startedPreStop(_uid: unknown, id: string): StartedPreStop | undefined {
    return this.begunId === undefined || this.begunId === id ? this.begun : undefined;
  }
  async containerStopped(): Promise<void> {
    this.told.push('stopped');
  }
}

function aNode(run: (hook: LifecycleHandler, harness: PodRuntimeRig, signal: AbortSignal) => Promise<void>) {
  const checkpoint = new KeptNotes();
  const ran: LifecycleHandler[] = [];
  const hooks: HookRunner = {
    run: (hook, _target, signal) => {
      ran.push(hook);
      return run(hook, harness, signal);
    },
  };
  const harness: PodRuntimeRig = new PodRuntimeRig({ hooks, deps: { hookCheckpoint: checkpoint } });
  return { rig: harness, checkpoint, ran };
}

async function idsOf(
  harness: PodRuntimeRig,
  pod: Pod,
  ...names: readonly string[]
): Promise<readonly string[]> {
  const found = await Promise.all(names.map((name) => harness.newest(pod, name)));
  return found.flatMap((each) => (each === undefined ? [] : [each.id]));
}

describe('postStart hook', () => {
  const pod = podOf({ a: { lifecycle: { postStart: exec } } });

  it('records a postStart hook before its container starts and clears it when it has finished', async () => {
    const { rig, checkpoint } = aNode(async () => {});
    using _rig = rig;
    await rig.sync(pod);
    assert.deepEqual(checkpoint.told, ['due', 'over']);
  });

  it('runs a postStart hook again, before other containers start, if a previous kubelet did not record that the hook has ended', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    await rig.sync(pod);
    checkpoint.due = await idsOf(rig, pod, 'a');
    rig.takeCalls();
    const result = await rig.sync(pod);
    assert.equal(result.error, undefined);
    assert.deepEqual([ran.length, checkpoint.due], [2, []]);
    assert.equal(rig.simulated.runningContainers().length, 1);
  });

  it('runs the postStart hook again in each container for which its end was not recorded', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    const two = podOf({ a: { lifecycle: { postStart: exec } }, b: { lifecycle: { postStart: exec } } });
    await rig.sync(two);
    checkpoint.due = await idsOf(rig, two, 'a', 'b');
    await rig.sync(two);
    assert.deepEqual([ran.length, checkpoint.due], [4, []]);
  });

  it('stops the container of a postStart hook that fails when it is run again', async () => {
    let fails = false;
    const { rig, checkpoint } = aNode(() => (fails ? Promise.reject(new Error('no')) : Promise.resolve()));
    using _rig = rig;
    await rig.sync(pod);
    checkpoint.due = await idsOf(rig, pod, 'a');
    fails = true;
    const result = await rig.sync(pod);
    assert.match(result.error?.message ?? '', /PostStartHookError/);
    assert.deepEqual(rig.eventsOf('FailedPostStartHook'), ['PostStartHook failed']);
    assert.deepEqual([rig.simulated.runningContainers().length, checkpoint.due], [0, []]);
  });

  it('clears the postStart hook of an exited container without running it', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    const brief = podOf(
      { a: { script: 'exit 0', lifecycle: { postStart: exec } }, b: {} },
      { restartPolicy: 'Never' },
    );
    await rig.sync(brief);
    checkpoint.due = await idsOf(rig, brief, 'a');
    await rig.clock.advance(1_000);
    await rig.sync(brief);
    assert.deepEqual([ran.length, checkpoint.due], [1, []]);
  });

  it('cancels a postStart hook with the sync of a deleted pod, and keeps the record of the hook', async () => {
    const { rig, checkpoint } = aNode((_hook, { clock }, signal) => clock.sleep(1e9, signal));
    using _rig = rig;
    const observed = await rig.observe(pod);
    const controller = new AbortController();
    const context = { liveness: () => undefined, startup: () => undefined };
    const syncing = rig.runtime.syncPod({ pod, observed, context }, controller.signal);
    syncing.catch(() => {});
    await rig.clock.advanceUntil(() => checkpoint.due.length > 0, 60_000);
    await rig.clock.advance(5_000);
    controller.abort(cancelledError('it is deleted'));
    await assert.rejects(rig.done(syncing), /it is deleted/);
    assert.equal(checkpoint.due.length, 1);
    assert.deepEqual(rig.eventsOf('FailedPostStartHook'), []);
  });
});

describe('preStop hook', () => {
  it('records a preStop hook with the remaining grace period and clears it when the container has stopped', async () => {
    const { rig, checkpoint } = aNode(async () => {});
    using _rig = rig;
    const pod = podOf({ a: { lifecycle: { preStop: exec } } });
    await rig.sync(pod);
    await rig.kill(pod, 20);
    assert.deepEqual(checkpoint.told, ['preStop 20', 'stopped']);
  });

  it('does not repeat a preStop hook that a previous kubelet started, and counts its running time towards the grace period', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    const pod = podOf({ a: { ...ignoring, lifecycle: { preStop: exec } } });
    await rig.sync(pod);
    checkpoint.begun = { usedMs: 12_000, msLeft: 8_000 };
    const startMs = rig.clock.now();
    await rig.kill(pod, 20);
    assert.equal(ran.length, 0);
    assert.equal(Math.round((rig.clock.now() - startMs) / 1_000), 8);
  });

  it('once a preStop hook was started, every later sync stops the container of the hook', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    const pod = podOf({ a: { lifecycle: { preStop: exec } }, b: {} });
    await rig.sync(pod);
    const { id } = (await rig.newest(pod, 'a')) ?? {};
    checkpoint.begun = { usedMs: 12_000, msLeft: 8_000 };
    checkpoint.begunId = id;
    await rig.sync(pod);
    assert.deepEqual([(await rig.newest(pod, 'a'))?.state, ran.length], ['exited', 0]);
    await rig.sync(pod);
    const after = await rig.newest(pod, 'a');
    assert.deepEqual([after?.state, after?.restartCount], ['running', 1]);
    assert.equal((await rig.newest(pod, 'b'))?.restartCount, 0);
  });

  it('continues a preStop hook with sleep for the remaining time', async () => {
    const { rig, checkpoint, ran } = aNode(async () => {});
    using _rig = rig;
    const pod = podOf({ a: { lifecycle: { preStop: { sleep: { seconds: 10 } } } } });
    await rig.sync(pod);
    checkpoint.begun = { usedMs: 7_500, msLeft: 12_500 };
    await rig.kill(pod, 20);
    assert.deepEqual(ran, [{ sleep: { seconds: 2.5 } }]);
  });
});
