import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { type Fault, scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError, KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/** Syncs a pod with a faulty sandbox creation and cancels the sync half a second later. */
async function giveUp(harness: PodRuntimeRig, pod: Pod): Promise<number> {
  const controller = new AbortController();
  const startMs = harness.clock.monotonicMs();
  harness.clock.timer(500, () => controller.abort(cancelledError('the pod is terminating')));
  await assert.rejects(harness.sync(pod, controller.signal), /the pod is terminating/);
  return harness.clock.monotonicMs() - startMs;
}

function rigWith(fault: Fault, seed = 1): PodRuntimeRig {
  const calls = [{ method: 'runPodSandbox', fault, times: 1 }] as const;
  return new PodRuntimeRig({ seed, faults: scriptedFaults({ calls }) });
}

describe('pods that terminate while their sandbox is created', () => {
  it('a sandbox of a pod that terminates during RunPodSandbox is stopped and removed', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      using harness = rigWith({ kind: 'delay', ms: 2_000 }, seed);
      const pod = podOf({ a: {} });
      await giveUp(harness, pod);
      assert.equal((await harness.observe(pod)).sandboxes.length, 1, `seed ${seed}`);
      assert.equal((await harness.kill(pod, 1)).error, undefined);
      await harness.done(harness.runtime.removePod(pod, harness.signal));
      await harness.clock.advance(60_000);
      const { sandboxes, containers, names, addresses } = harness.simulated.held();
      assert.deepEqual([sandboxes, containers, names, addresses], [0, 0, 0, 0], `seed ${seed}`);
      assert.equal(harness.clock.pendingTimers, 0);
    }
  });

  it('cancelling a sync does not wait for long when RunPodSandbox hangs', async () => {
    using harness = rigWith({ kind: 'hang' });
    const tookMs = await giveUp(harness, podOf({ a: {} }));
    assert.ok(tookMs < 4_000, `it took ${tookMs} ms`);
    assert.equal(harness.simulated.held().calls, 0);
  });

  it('records no event for a cancelled sandbox creation', async () => {
    using harness = rigWith({ kind: 'late-effect', ms: 1_000, code: 'DEADLINE_EXCEEDED' });
    const controller = new AbortController();
    const pod = podOf({ a: {} });
    const observed = await harness.observe(pod);
    const sync = harness.runtime.syncPod(
      { pod, observed, context: { liveness: () => undefined, startup: () => undefined } },
      controller.signal,
    );
    controller.abort(cancelledError('the pod is terminating'));
    await assert.rejects(harness.done(sync), /the pod is terminating/);
    assert.deepEqual(harness.events, []);
  });
});

describe('sandboxes whose status cannot be read', () => {
  it('an unreadable sandbox status fails the sync with an event, and the next sync uses the sandbox', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'no answer today' } as const;
    using harness = new PodRuntimeRig({
      faults: scriptedFaults({ calls: [{ method: 'podSandboxStatus', fault, times: 1 }] }),
    });
    const pod = podOf({ a: {} });
    const result = await harness.sync(pod);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'PodSandboxStatusError');
    assert.deepEqual(harness.eventsOf('FailedPodSandBoxStatus'), [
      'Unable to get pod sandbox status: no answer today',
    ]);
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.deepEqual(
      (await harness.observe(pod)).sandboxes.map(({ attempt }) => attempt),
      [0],
    );
  });
});

describe('sandboxes with a reserved name', () => {
  const taken = new KubelingError(
    'CRI_FAILED',
    'failed to reserve sandbox name "x": name "x" is reserved for "y"',
  );

  /**
   * Runs `meanwhile`, then lets the first RunPodSandbox call fail because the sandbox name is
   * reserved.
   */
  function refuseFirst(
    harness: PodRuntimeRig,
    meanwhile: (make: () => Promise<string>) => void | Promise<void>,
  ): void {
    const real = harness.cri.runPodSandbox;
    let calls = 0;
    Object.assign(harness.cri, {
      runPodSandbox: async (...[request, signal]: Parameters<typeof real>) => {
        if (calls++ > 0) return await real(request, signal);
        await meanwhile(async () => (await real(request, harness.signal)).podSandboxId);
        throw taken;
      },
    });
  }

  const sandboxesOf = async (harness: PodRuntimeRig, pod: Pod) =>
    (await harness.observe(pod)).sandboxes.map(({ attempt, state }) => `${attempt} ${state}`);

  it('waits until the sandbox that reserves the name appears, and uses this sandbox', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    refuseFirst(harness, (make) => void harness.clock.timer(2_000, () => void make()));
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.deepEqual(await sandboxesOf(harness, pod), ['0 ready']);
  });

  it('creates the next attempt when the sandbox that reserves the name is not ready', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    refuseFirst(harness, async (make) => {
      await harness.cri.stopPodSandbox({ podSandboxId: await make() }, harness.signal);
    });
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.deepEqual(await sandboxesOf(harness, pod), ['1 ready', '0 not-ready']);
  });
});

describe('sandboxes with the wrong network', () => {
  it('a sandbox with the wrong network is not replaced before all its containers have stopped', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const moved = { ...pod, spec: { ...pod.spec, hostNetwork: true } };
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault }] }));
    harness.takeCalls();
    const result = await harness.sync(moved);
    assert.match(result.error?.message ?? '', /KillContainerError: "stuck"/);
    assert.equal(harness.takeCalls().includes('runPodSandbox'), false);
  });
});
