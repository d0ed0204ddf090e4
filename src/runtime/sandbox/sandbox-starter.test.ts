import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { type Fault, scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError, KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/** Syncs a pod with a faulty sandbox creation and cancels the sync half a second later. */
async function giveUp(rig: PodRuntimeRig, pod: Pod): Promise<number> {
  const controller = new AbortController();
  const startMs = rig.clock.monotonicMs();
  rig.clock.timer(500, () => controller.abort(cancelledError('the pod is terminating')));
  await assert.rejects(rig.sync(pod, controller.signal), /the pod is terminating/);
  return rig.clock.monotonicMs() - startMs;
}

function rigWith(fault: Fault, seed = 1): PodRuntimeRig {
  const calls = [{ method: 'runPodSandbox', fault, times: 1 }] as const;
  return new PodRuntimeRig({ seed, faults: scriptedFaults({ calls }) });
}

describe('a pod that terminates while its sandbox is created', () => {
  it('is cancelled after the sandbox was created, which is then stopped and removed', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      using rig = rigWith({ kind: 'delay', ms: 2_000 }, seed);
      const pod = podOf({ a: {} });
      await giveUp(rig, pod);
      assert.equal((await rig.observe(pod)).sandboxes.length, 1, `seed ${seed}`);
      assert.equal((await rig.kill(pod, 1)).error, undefined);
      await rig.done(rig.runtime.removePod(pod, rig.signal));
      await rig.clock.advance(60_000);
      const { sandboxes, containers, names, addresses } = rig.simulated.held();
      assert.deepEqual([sandboxes, containers, names, addresses], [0, 0, 0, 0], `seed ${seed}`);
      assert.equal(rig.clock.pendingTimers, 0);
    }
  });

  it('does not wait long for a runtime that hangs', async () => {
    using rig = rigWith({ kind: 'hang' });
    const tookMs = await giveUp(rig, podOf({ a: {} }));
    assert.ok(tookMs < 4_000, `it took ${tookMs} ms`);
    assert.equal(rig.simulated.held().calls, 0);
  });

  it('records no event for the cancelled sandbox creation', async () => {
    using rig = rigWith({ kind: 'late-effect', ms: 1_000, code: 'DEADLINE_EXCEEDED' });
    const controller = new AbortController();
    const pod = podOf({ a: {} });
    const observed = await rig.observe(pod);
    const sync = rig.runtime.syncPod(
      { pod, observed, context: { liveness: () => undefined, startup: () => undefined } },
      controller.signal,
    );
    controller.abort(cancelledError('the pod is terminating'));
    await assert.rejects(rig.done(sync), /the pod is terminating/);
    assert.deepEqual(rig.events, []);
  });
});

describe('a sandbox whose status cannot be read', () => {
  it('fails with its own event, and the sandbox is used by the next sync', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'no answer today' } as const;
    using rig = new PodRuntimeRig({
      faults: scriptedFaults({ calls: [{ method: 'podSandboxStatus', fault, times: 1 }] }),
    });
    const pod = podOf({ a: {} });
    const result = await rig.sync(pod);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'PodSandboxStatusError');
    assert.deepEqual(rig.eventsOf('FailedPodSandBoxStatus'), [
      'Unable to get pod sandbox status: no answer today',
    ]);
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.deepEqual(
      (await rig.observe(pod)).sandboxes.map(({ attempt }) => attempt),
      [0],
    );
  });
});

describe('a sandbox with a reserved name', () => {
  const taken = new KubelingError(
    'CRI_FAILED',
    'failed to reserve sandbox name "x": name "x" is reserved for "y"',
  );

  /** The first RunPodSandbox fails with a reserved name, after `meanwhile`. */
  function refuseFirst(
    rig: PodRuntimeRig,
    meanwhile: (make: () => Promise<string>) => void | Promise<void>,
  ): void {
    const real = rig.cri.runPodSandbox;
    let calls = 0;
    Object.assign(rig.cri, {
      runPodSandbox: async (...[request, signal]: Parameters<typeof real>) => {
        if (calls++ > 0) return await real(request, signal);
        await meanwhile(async () => (await real(request, rig.signal)).podSandboxId);
        throw taken;
      },
    });
  }

  const sandboxesOf = async (rig: PodRuntimeRig, pod: Pod) =>
    (await rig.observe(pod)).sandboxes.map(({ attempt, state }) => `${attempt} ${state}`);

  it('is awaited and used when it appears', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    refuseFirst(rig, (make) => void rig.clock.timer(2_000, () => void make()));
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.deepEqual(await sandboxesOf(rig, pod), ['0 ready']);
  });

  it('is left to garbage collection when it is not ready, and the next attempt is created', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    refuseFirst(rig, async (make) => {
      await rig.cri.stopPodSandbox({ podSandboxId: await make() }, rig.signal);
    });
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.deepEqual(await sandboxesOf(rig, pod), ['1 ready', '0 not-ready']);
  });
});

describe('a sandbox with the wrong network', () => {
  it('is not replaced before all its containers have stopped', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    const moved = { ...pod, spec: { ...pod.spec, hostNetwork: true } };
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    rig.takeCalls();
    const result = await rig.sync(moved);
    assert.match(result.error?.message ?? '', /KillContainerError: "stuck"/);
    assert.equal(rig.takeCalls().includes('runPodSandbox'), false);
  });
});
