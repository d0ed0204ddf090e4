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

/** Lifetimes of containers by name, in seconds of virtual time since the first kill. */
function exits(rig: PodRuntimeRig, sinceMs: number): Record<string, number> {
  const ends = rig.simulated.trace.entries().filter((entry) => entry.kind === 'container-exited');
  return Object.fromEntries(ends.map(({ name, at }) => [name, Math.round((at - sinceMs) / 1_000)]));
}

describe('killing a pod', () => {
  it('stops containers, then every sandbox, and removes nothing', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await rig.sync(pod);
    const running = await rig.observe(pod);
    rig.takeCalls();
    const result = await rig.done(rig.runtime.killPod({ pod, running }, rig.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(rig.takeCalls(), ['stopContainer', 'stopContainer', 'stopPodSandbox']);
    assert.deepEqual(rig.eventsOf('Killing').toSorted(), ['Stopping container a', 'Stopping container b']);
    const after = await rig.observe(pod);
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
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    await rig.kill(pod, 7);
    assert.deepEqual(exits(rig, startMs), { a: 7 });
    assert.equal((await rig.newest(pod, 'a'))?.exitCode, 137);
  });

  it('uses the grace period of the spec or the deletion, at least two seconds', async () => {
    for (const [deletion, spec, want] of [
      [undefined, 5, 5],
      [3, 5, 3],
      [0, 5, 2],
      [undefined, undefined, 2],
    ] as const) {
      using rig = new PodRuntimeRig();
      const pod = podOf({ a: ignoring }, { terminationGracePeriodSeconds: spec });
      await rig.sync(pod);
      const deleted = { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: deletion } };
      const startMs = rig.clock.now();
      await rig.kill(deleted);
      assert.deepEqual(exits(rig, startMs), { a: want });
    }
  });

  it('stops a container that is not in the spec with its restored spec', async () => {
    const hooked: string[] = [];
    const hooks: HookRunner = { run: async (_hook, { container }) => void hooked.push(container.name) };
    using rig = new PodRuntimeRig({ hooks });
    const pod = podOf({ old: { ...ignoring, ...preStop } }, { terminationGracePeriodSeconds: 5 });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    const renamed = podOf({ new: {} }, { terminationGracePeriodSeconds: 5 });
    const result = await rig.kill({ ...renamed, metadata: pod.metadata });
    assert.equal(result.error, undefined);
    assert.deepEqual(exits(rig, startMs), { old: 5 });
    assert.deepEqual(hooked, ['old']);
    assert.deepEqual(rig.eventsOf('Killing'), ['Stopping container old']);
  });

  it('shortens the grace period of a container that is being stopped', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    const first = new AbortController();
    const running = await rig.observe(pod);
    const killed = rig.runtime.killPod({ pod, running, graceSeconds: 60 }, first.signal);
    await rig.clock.advance(10_000);
    first.abort(cancelledError('less time'));
    await assert.rejects(killed, /less time/);
    await rig.kill(pod, 5);
    assert.deepEqual(exits(rig, startMs), { a: 15 });
    assert.equal(rig.eventsOf('Killing').length, 1);
    assert.equal(rig.runtime.pending().kills, 0);
  });

  it('never extends the grace period', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: ignoring });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    const first = new AbortController();
    const running = await rig.observe(pod);
    const killed = rig.runtime.killPod({ pod, running, graceSeconds: 20 }, first.signal);
    await rig.clock.advance(10_000);
    first.abort(cancelledError('again'));
    await assert.rejects(killed);
    await rig.kill(pod, 600);
    assert.deepEqual(exits(rig, startMs), { a: 20 });
  });

  it('runs the preStop hook once for repeated kills, and counts its time', async () => {
    let runs = 0;
    let hookEnded = 0;
    const hooks: HookRunner = {
      run: async (_hook, _target, signal) => {
        runs++;
        await rig.clock.sleep(8_000, signal);
        hookEnded = rig.clock.now();
      },
    };
    using rig = new PodRuntimeRig({ hooks });
    const pod = podOf({ a: { ...ignoring, ...preStop } });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    const first = new AbortController();
    const running = await rig.observe(pod);
    const killed = rig.runtime.killPod({ pod, running, graceSeconds: 20 }, first.signal);
    await rig.clock.advance(3_000);
    first.abort(cancelledError('again'));
    await assert.rejects(killed);
    await rig.kill(pod, 20);
    assert.deepEqual([runs, Math.round((hookEnded - startMs) / 1_000)], [1, 8]);
    assert.deepEqual(exits(rig, startMs), { a: 20 });
  });

  it('cancels a hook at the deadline, also at a shortened one', async () => {
    const hooks: HookRunner = { run: (_hook, _target, signal) => rig.clock.sleep(1e9, signal) };
    using rig = new PodRuntimeRig({ hooks });
    const pod = podOf({ a: { ...preStop, script: 'sleep 100000' } });
    await rig.sync(pod);
    const startMs = rig.clock.now();
    const first = new AbortController();
    const running = await rig.observe(pod);
    const killed = rig.runtime.killPod({ pod, running, graceSeconds: 60 }, first.signal);
    await rig.clock.advance(10_000);
    first.abort(cancelledError('less time'));
    await assert.rejects(killed);
    await rig.kill(pod, 3);
    assert.equal(Math.floor((rig.clock.now() - startMs) / 1_000), 13);
    assert.deepEqual(rig.eventsOf('FailedPreStopHook'), []);
    rig.simulated.close();
    assert.equal(rig.clock.pendingTimers, 0);
  });

  it('records an event for a failed hook and stops the container', async () => {
    using rig = new PodRuntimeRig({ hooks: { run: () => Promise.reject(new Error('secret')) } });
    const pod = podOf({ a: preStop });
    await rig.sync(pod);
    assert.equal((await rig.kill(pod)).error, undefined);
    assert.deepEqual(rig.eventsOf('FailedPreStopHook'), ['PreStopHook failed']);
    assert.equal(rig.simulated.runningContainers().length, 0);
  });

  it('stops sidecars after the regular containers, in reverse order', async () => {
    using rig = new PodRuntimeRig();
    const sidecar = { ...ignoring, restartPolicy: 'Always', script: 'sleep 100000' };
    const slow = { script: 'trap "sleep 3; exit 0" TERM; while true; do sleep 1; done' };
    const pod = podOf({ main: slow }, { init: { first: sidecar, second: sidecar } });
    for (let syncs = 0; syncs < 3; syncs++) await rig.sync(pod);
    assert.equal(rig.simulated.runningContainers().length, 3);
    await rig.kill(pod);
    const ends = rig.simulated.trace.entries().filter((entry) => entry.kind === 'container-exited');
    assert.deepEqual(
      ends.map(({ name }) => name),
      ['main', 'second', 'first'],
    );
  });

  it('stops every sandbox even when a container fails to stop, and reports the failure', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    const result = await rig.kill(pod);
    assert.equal(result.error?.message, 'failed to "KillContainer" for "a" with KillContainerError: "stuck"');
    assert.equal((await rig.observe(pod)).sandboxes[0]?.state, 'not-ready');
  });

  it('counts an exited container as stopped when StopContainer fails', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 1; exit 4' }, b: {} });
    await rig.sync(pod);
    const running = await rig.observe(pod);
    await rig.clock.advance(2_000);
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'ttrpc: closed' } as const;
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    const { actions } = await rig.done(rig.runtime.killPod({ pod, running, graceSeconds: 2 }, rig.signal));
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
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await rig.sync(pod);
    const seen = await rig.observe(pod);
    const containers = seen.containers.map((each) => ({
      ...each,
      state: each.name === 'a' ? ('unknown' as const) : ('created' as const),
    }));
    rig.takeCalls();
    await rig.done(
      rig.runtime.killPod({ pod, running: { ...seen, containers }, graceSeconds: 2 }, rig.signal),
    );
    assert.deepEqual(rig.takeCalls(), ['stopContainer', 'stopPodSandbox']);
  });

  it('runs no hook without remaining grace period', async () => {
    const runs: string[] = [];
    using rig = new PodRuntimeRig({
      hooks: { run: async (_hook, { container }) => void runs.push(container.name) },
    });
    const pod = podOf({ a: { lifecycle: { preStop: { exec: { command: ['x'] } } } } });
    await rig.sync(pod);
    await rig.kill(pod, 0);
    assert.deepEqual(runs, []);
  });

  it('counts a missing container as stopped', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    const running = await rig.observe(pod);
    await rig.kill(pod);
    rig.gone.add(pod.metadata.uid);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const result = await rig.done(rig.runtime.killPod({ pod, running }, rig.signal));
    assert.equal(result.error, undefined);
  });

  it('stops a pod without a spec, with its hook', async () => {
    const ran: unknown[] = [];
    using rig = new PodRuntimeRig({
      hooks: {
        run: async (hook, { pod, containerId }) => void ran.push([hook, pod.metadata.name, containerId]),
      },
    });
    const pod = podOf({ a: { ...ignoring, ...preStop } });
    await rig.sync(pod);
    const [listed] = await rig.done(rig.runtime.listPods(rig.signal));
    assert.ok(listed !== undefined);
    const startMs = rig.clock.now();
    const result = await rig.done(rig.runtime.killRuntimePod(listed, () => 1, rig.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(ran, [[preStop.lifecycle.preStop, 'web', listed.containers[0]?.id]]);
    assert.deepEqual(exits(rig, startMs), { a: 2 });
  });

  it('uses the grace period of the failed probe', async () => {
    using rig = new PodRuntimeRig();
    const livenessProbe = { terminationGracePeriodSeconds: 4 };
    const pod = podOf({ a: { ...ignoring, livenessProbe } });
    await rig.sync(pod);
    const observed = await rig.observe(pod);
    const startMs = rig.clock.now();
    const context: PlanContext = { ...noProbes, liveness: () => 'failure' };
    const result = await rig.done(rig.runtime.syncPod({ pod, observed, context }, rig.signal));
    assert.equal(result.error, undefined);
    assert.deepEqual(exits(rig, startMs), { a: 4 });
    assert.equal((await rig.newest(pod, 'a'))?.restartCount, 1);
    assert.deepEqual(rig.eventsOf('Killing'), ['Container a failed liveness probe, will be restarted']);
  });

  it('lists no pod that never existed', async () => {
    using rig = new PodRuntimeRig();
    assert.equal(await rig.done(rig.runtime.listPod('nobody' as PodUid, rig.signal)), undefined);
  });
});
