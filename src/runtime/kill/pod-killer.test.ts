import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noProbes, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import type { HookRunner } from '../hooks/lifecycle-hooks.ts';
import type { PlanContext } from '../plan/pod-actions.ts';

const ignoring = { script: 'trap "" TERM; sleep 100000' };
const preStop = { lifecycle: { preStop: { exec: { command: ['bye'] } } } };

/** The lifetimes of containers by name, in seconds of virtual time since the first kill. */
function exits(harness: PodRuntimeRig, sinceMs: number): Record<string, number> {
  const ends = harness.simulated.trace.entries().filter((entry) => entry.kind === 'container-exited');
  return Object.fromEntries(ends.map(({ name, at }) => [name, Math.round((at - sinceMs) / 1_000)]));
}

describe('killing a pod', () => {
  it('stops the containers of a killed pod, then every sandbox, and removes nothing', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await harness.sync(pod);
    const running = await harness.observe(pod);
    harness.takeCalls();
    const result = await harness.done(harness.runtime.killPod({ pod, running }, harness.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(harness.takeCalls(), ['stopContainer', 'stopContainer', 'stopPodSandbox']);
    assert.deepEqual(harness.eventsOf('Killing').toSorted(), [
      'Stopping container a',
      'Stopping container b',
    ]);
    const after = await harness.observe(pod);
    assert.deepEqual(
      after.containers.map(({ state }) => state),
      ['exited', 'exited'],
    );
    assert.deepEqual(
      after.sandboxes.map(({ state }) => state),
      ['not-ready'],
    );
  });

  it('kills a container that ignores SIGTERM after the grace period', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    await harness.kill(pod, 7);
    assert.deepEqual(exits(harness, startMs), { a: 7 });
    assert.equal((await harness.newest(pod, 'a'))?.exitCode, 137);
  });

  it('uses the grace period of the spec or the deletion, at least two seconds', async () => {
    for (const [deletion, spec, want] of [
      [undefined, 5, 5],
      [3, 5, 3],
      [0, 5, 2],
      [undefined, undefined, 2],
    ] as const) {
      using harness = new PodRuntimeRig();
      const pod = podOf({ a: ignoring }, { terminationGracePeriodSeconds: spec });
      await harness.sync(pod);
      const deleted = { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: deletion } };
      const startMs = harness.clock.now();
      await harness.kill(deleted);
      assert.deepEqual(exits(harness, startMs), { a: want });
    }
  });

  it('stops a container that is not in the spec with its restored spec', async () => {
    const hooked: string[] = [];
    const hooks: HookRunner = { run: async (_hook, { container }) => void hooked.push(container.name) };
    using harness = new PodRuntimeRig({ hooks });
    const pod = podOf({ old: { ...ignoring, ...preStop } }, { terminationGracePeriodSeconds: 5 });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    const renamed = podOf({ new: {} }, { terminationGracePeriodSeconds: 5 });
    const result = await harness.kill({ ...renamed, metadata: pod.metadata });
    assert.equal(result.error, undefined);
    assert.deepEqual(exits(harness, startMs), { old: 5 });
    assert.deepEqual(hooked, ['old']);
    assert.deepEqual(harness.eventsOf('Killing'), ['Stopping container old']);
  });

  it('shortens the grace period of a container while it is being stopped', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    const first = new AbortController();
    const running = await harness.observe(pod);
    const killed = harness.runtime.killPod({ pod, running, graceSeconds: 60 }, first.signal);
    await harness.clock.advance(10_000);
    first.abort(cancelledError('less time'));
    await assert.rejects(killed, /less time/);
    await harness.kill(pod, 5);
    assert.deepEqual(exits(harness, startMs), { a: 15 });
    assert.equal(harness.eventsOf('Killing').length, 1);
    assert.equal(harness.runtime.pending().kills, 0);
  });

  it('a later kill never extends the grace period', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    const first = new AbortController();
    const running = await harness.observe(pod);
    const killed = harness.runtime.killPod({ pod, running, graceSeconds: 20 }, first.signal);
    await harness.clock.advance(10_000);
    first.abort(cancelledError('again'));
    await assert.rejects(killed);
    await harness.kill(pod, 600);
    assert.deepEqual(exits(harness, startMs), { a: 20 });
  });

  it('runs the preStop hook once for repeated kills, and counts the time of the hook towards the grace period', async () => {
    let runs = 0;
    let hookEnded = 0;
    const hooks: HookRunner = {
      run: async (_hook, _target, signal) => {
        runs++;
        await harness.clock.sleep(8_000, signal);
        hookEnded = harness.clock.now();
      },
    };
    using harness = new PodRuntimeRig({ hooks });
    const pod = podOf({ a: { ...ignoring, ...preStop } });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    const first = new AbortController();
    const running = await harness.observe(pod);
    const killed = harness.runtime.killPod({ pod, running, graceSeconds: 20 }, first.signal);
    await harness.clock.advance(3_000);
    first.abort(cancelledError('again'));
    await assert.rejects(killed);
    await harness.kill(pod, 20);
    assert.deepEqual([runs, Math.round((hookEnded - startMs) / 1_000)], [1, 8]);
    assert.deepEqual(exits(harness, startMs), { a: 20 });
  });

  it('cancels a preStop hook at the deadline, also when the deadline was shortened', async () => {
    const hooks: HookRunner = { run: (_hook, _target, signal) => harness.clock.sleep(1e9, signal) };
    using harness = new PodRuntimeRig({ hooks });
    const pod = podOf({ a: { ...preStop, script: 'sleep 100000' } });
    await harness.sync(pod);
    const startMs = harness.clock.now();
    const first = new AbortController();
    const running = await harness.observe(pod);
    const killed = harness.runtime.killPod({ pod, running, graceSeconds: 60 }, first.signal);
    await harness.clock.advance(10_000);
    first.abort(cancelledError('less time'));
    await assert.rejects(killed);
    await harness.kill(pod, 3);
    assert.equal(Math.floor((harness.clock.now() - startMs) / 1_000), 13);
    assert.deepEqual(harness.eventsOf('FailedPreStopHook'), []);
    harness.simulated.close();
    assert.equal(harness.clock.pendingTimers, 0);
  });

  it('records an event for a failed preStop hook and stops the container', async () => {
    using harness = new PodRuntimeRig({ hooks: { run: () => Promise.reject(new Error('secret')) } });
    const pod = podOf({ a: preStop });
    await harness.sync(pod);
    assert.equal((await harness.kill(pod)).error, undefined);
    assert.deepEqual(harness.eventsOf('FailedPreStopHook'), ['PreStopHook failed']);
    assert.equal(harness.simulated.runningContainers().length, 0);
  });

  it('stops sidecars after the regular containers, in reverse order', async () => {
    using harness = new PodRuntimeRig();
    const sidecar = { ...ignoring, restartPolicy: 'Always', script: 'sleep 100000' };
    const slow = { script: 'trap "sleep 3; exit 0" TERM; while true; do sleep 1; done' };
    const pod = podOf({ main: slow }, { init: { first: sidecar, second: sidecar } });
    for (let syncs = 0; syncs < 3; syncs++) await harness.sync(pod);
    assert.equal(harness.simulated.runningContainers().length, 3);
    await harness.kill(pod);
    const ends = harness.simulated.trace.entries().filter((entry) => entry.kind === 'container-exited');
    assert.deepEqual(
      ends.map(({ name }) => name),
      ['main', 'second', 'first'],
    );
  });

  it('stops every sandbox even when a container fails to stop, and reports the failure', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    const result = await harness.kill(pod);
    assert.equal(result.error?.message, 'failed to "KillContainer" for "a" with KillContainerError: "stuck"');
    assert.equal((await harness.observe(pod)).sandboxes[0]?.state, 'not-ready');
  });

  it('counts an exited container as stopped when StopContainer fails', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 1; exit 4' }, b: {} });
    await harness.sync(pod);
    const running = await harness.observe(pod);
    await harness.clock.advance(2_000);
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'ttrpc: closed' } as const;
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    const { actions } = await harness.done(
      harness.runtime.killPod({ pod, running, graceSeconds: 2 }, harness.signal),
    );
    assert.deepEqual(
      actions
        .map(({ target, failure }) => [target, failure?.message])
        .slice(0, 2)
        .toSorted(),
      [
        ['a', undefined],
        ['b', 'ttrpc: closed'],
      ],
    );
  });

  it('stops running and unknown containers, but not created ones', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await harness.sync(pod);
    const observed = await harness.observe(pod);
    const containers = observed.containers.map((each) => ({
      ...each,
      state: each.name === 'a' ? ('unknown' as const) : ('created' as const),
    }));
    harness.takeCalls();
    await harness.done(
      harness.runtime.killPod({ pod, running: { ...observed, containers }, graceSeconds: 2 }, harness.signal),
    );
    assert.deepEqual(harness.takeCalls(), ['stopContainer', 'stopPodSandbox']);
  });

  it('runs no preStop hook when no grace period remains', async () => {
    const runs: string[] = [];
    using harness = new PodRuntimeRig({
      hooks: { run: async (_hook, { container }) => void runs.push(container.name) },
    });
    const pod = podOf({ a: { lifecycle: { preStop: { exec: { command: ['x'] } } } } });
    await harness.sync(pod);
    await harness.kill(pod, 0);
    assert.deepEqual(runs, []);
  });

  it('counts a container that the runtime does not have as stopped', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const running = await harness.observe(pod);
    await harness.kill(pod);
    harness.gone.add(pod.metadata.uid);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const result = await harness.done(harness.runtime.killPod({ pod, running }, harness.signal));
    assert.equal(result.error, undefined);
  });

  it('stops a pod without a spec, running its preStop hook', async () => {
    const ran: unknown[] = [];
    using harness = new PodRuntimeRig({
      hooks: {
        run: async (hook, { pod, containerId }) => void ran.push([hook, pod.metadata.name, containerId]),
      },
    });
    const pod = podOf({ a: { ...ignoring, ...preStop } });
    await harness.sync(pod);
    const [listed] = await harness.done(harness.runtime.listPods(harness.signal));
    assert.ok(listed !== undefined);
    const startMs = harness.clock.now();
    const result = await harness.done(harness.runtime.killRuntimePod(listed, () => 1, harness.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(ran, [[preStop.lifecycle.preStop, 'web', listed.containers[0]?.id]]);
    assert.deepEqual(exits(harness, startMs), { a: 2 });
  });

  it('uses the grace period of the probe that failed', async () => {
    using harness = new PodRuntimeRig();
    const livenessProbe = { terminationGracePeriodSeconds: 4 };
    const pod = podOf({ a: { ...ignoring, livenessProbe } });
    await harness.sync(pod);
    const observed = await harness.observe(pod);
    const startMs = harness.clock.now();
    const context: PlanContext = { ...noProbes, liveness: () => 'failure' };
    const result = await harness.done(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(exits(harness, startMs), { a: 4 });
    assert.equal((await harness.newest(pod, 'a'))?.restartCount, 1);
    assert.deepEqual(harness.eventsOf('Killing'), ['Container a failed liveness probe, will be restarted']);
  });

  it('does not list the containers of a pod that never existed', async () => {
    using harness = new PodRuntimeRig();
    assert.equal(await harness.done(harness.runtime.listPod('nobody' as PodUid, harness.signal)), undefined);
  });
});
