import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import type { HookRunner } from '../hooks/lifecycle-hooks.ts';
import { KillRecord } from './kill-record.ts';

const sidecar = { restartPolicy: 'Always', script: 'sleep 100000' };
const ignoring = { script: 'trap "" TERM; sleep 100000' };
const preStop = { lifecycle: { preStop: { exec: { command: ['bye'] } } } };

async function started(harness: PodRuntimeRig, pod: ReturnType<typeof podOf>): Promise<number> {
  for (let syncs = 0; syncs < 3; syncs++) await harness.sync(pod);
  return harness.clock.now();
}

/** Returns the exit times of containers by name, in whole seconds. */
function ends(harness: PodRuntimeRig, sinceMs: number): Record<string, number> {
  const exits = harness.simulated.trace.entries().filter((entry) => entry.kind === 'container-exited');
  return Object.fromEntries(exits.map(({ name, at }) => [name, Math.round((at - sinceMs) / 1_000)]));
}

describe('termination of a pod with sidecars', () => {
  it('starts all preStop hooks concurrently, including those of sidecars', async () => {
    const begun: [string, number][] = [];
    const hooks: HookRunner = {
      run: async (_hook, { container }, signal) => {
        begun.push([container.name, harness.clock.now()]);
        await harness.clock.sleep(3_000, signal);
      },
    };
    using harness = new PodRuntimeRig({ hooks });
    const pod = podOf({ main: preStop }, { init: { side: { ...sidecar, ...preStop } } });
    const startMs = await started(harness, pod);
    await harness.kill(pod, 20);
    assert.deepEqual(begun.map(([name]) => name).toSorted(), ['main', 'side']);
    assert.ok(begun.every(([, at]) => at - startMs < 1_000));
    assert.deepEqual(ends(harness, startMs), { main: 3, side: 3 });
  });

  it("limits a sidecar's wait to the grace period, then gives it two seconds", async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ main: ignoring }, { init: { side: { ...sidecar, ...ignoring } } });
    const startMs = await started(harness, pod);
    await harness.kill(pod, 6);
    assert.deepEqual(ends(harness, startMs), { main: 6, side: 8 });
  });

  it('stops a sidecar with the remaining grace period of the pod', async () => {
    using harness = new PodRuntimeRig();
    const slow = { script: 'trap "sleep 4; exit 0" TERM; while true; do sleep 1; done' };
    const pod = podOf({ main: slow }, { init: { side: { ...sidecar, ...ignoring } } });
    const startMs = await started(harness, pod);
    await harness.kill(pod, 10);
    const { main = 0, side } = ends(harness, startMs);
    assert.ok(main >= 4 && main <= 6, `${main}`);
    // The remaining time is rounded up to whole seconds.
    assert.ok(side === 10 || side === 11, `${side}`);
  });

  it('a shorter grace period also applies to containers that wait for others to stop', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ main: ignoring }, { init: { side: { ...sidecar, ...ignoring } } });
    const startMs = await started(harness, pod);
    const first = new AbortController();
    const running = await harness.observe(pod);
    const killed = harness.runtime.killPod({ pod, running, graceSeconds: 600 }, first.signal);
    await harness.clock.advance(10_000);
    first.abort(cancelledError('less time'));
    await assert.rejects(killed, /less time/);
    await harness.kill(pod, 3);
    assert.deepEqual(ends(harness, startMs), { main: 13, side: 15 });
  });
});

describe('sandboxes of a terminating pod', () => {
  it('stops all sandboxes of a terminating pod, even if one of them or a container fails to stop', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const observed = await harness.observe(pod);
    const running = { ...observed, sandboxes: [{ id: 'gone-1' }, ...observed.sandboxes, { id: 'gone-2' }] };
    const calls = [
      { method: 'stopContainer', fault },
      { method: 'stopPodSandbox', fault },
    ] as const;
    harness.simulated.setFaults(scriptedFaults({ calls }));
    harness.takeCalls();
    const { actions } = await harness.done(
      harness.runtime.killPod({ pod, running, graceSeconds: 2 }, harness.signal),
    );
    assert.equal(harness.takeCalls().filter((call) => call === 'stopPodSandbox').length, 3);
    assert.deepEqual(
      actions.flatMap(({ failure }) => failure?.reason ?? []),
      ['KillContainerError', 'KillPodSandboxError', 'KillPodSandboxError', 'KillPodSandboxError'],
    );
  });
});

it('each kill with a shorter grace period shortens the deadline, and the preStop hook ends at the deadline', async () => {
  const clock = new VirtualClock();
  using record = new KillRecord(podUid('pod'), clock, 600);
  let ended = false;
  record.startHook(async (signal) => {
    await clock.sleep(1e9, signal).catch(() => {});
    ended = true;
  });
  const left: number[] = [];
  for (const seconds of [300, 400, 60, 20]) {
    record.allow(seconds);
    left.push(record.secondsLeft);
    await clock.advance(1_000);
  }
  assert.deepEqual(left, [300, 299, 60, 20]);
  await clock.advance(18_000);
  assert.equal(ended, false);
  await clock.advance(1_001);
  assert.equal(ended, true);
  assert.equal(clock.pendingTimers, 0);
});
