import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anInstance, anObservedPod, aSandbox } from '../../../test/fakes/observed.ts';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { ObservedContainer, ObservedPod, Pod } from '../../pods/index.ts';
import { announcedExit } from './restart-preparation.ts';

const always = () => true;
const main = { name: 'main', image: 'example/web:1' };
const running = anInstance(main);
const observed = anObservedPod({ containers: [running] });

describe('container exits announced by a runtime event', () => {
  const isTaken = (pod: Pod, seen: ObservedPod = observed, id = running.id) =>
    announcedExit(pod, seen, id, 5_000) !== undefined;

  it('an announced exit is used only if the container restarts whatever its exit code is', () => {
    const rules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }];
    assert.equal(isTaken(aPod({ spec: { containers: [main] } })), true);
    assert.equal(isTaken(aPod({ spec: { containers: [main], restartPolicy: 'OnFailure' } })), false);
    assert.equal(isTaken(aPod({ spec: { containers: [main], restartPolicy: 'Never' } })), false);
    assert.equal(isTaken(aPod({ spec: { containers: [{ ...main, restartPolicyRules: rules }] } })), false);
  });

  it('an announced exit is ignored for a deleted pod and for a changed container', () => {
    const spec = { containers: [main] };
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    const deleted = aPod({ spec });
    assert.equal(
      isTaken({ ...deleted, metadata: { ...deleted.metadata, deletionTimestamp } }),
      false,
      'deleted',
    );
    assert.equal(isTaken(aPod({ spec: { containers: [{ ...main, image: 'example/web:2' }] } })), false);
    assert.equal(isTaken(aPod({ spec: { containers: [{ ...main, name: 'other' }] } })), false);
  });

  it('an announced exit is ignored unless the container is the newest instance and runs in the current sandbox', () => {
    const pod = aPod({ spec: { containers: [main] } });
    const newer = anInstance(main, { id: 'main-1', state: 'created' });
    const see = (containers: readonly ObservedContainer[], sandbox = aSandbox()) =>
      isTaken(pod, anObservedPod({ containers, sandboxes: [sandbox] }));
    assert.equal(see([running]), true);
    assert.equal(see([newer, running]), false);
    assert.equal(see([{ ...running, state: 'exited' }]), false);
    assert.equal(see([running], aSandbox({ state: 'not-ready' })), false);
    assert.equal(see([running], aSandbox({ id: 'sandbox-1' })), false);
    assert.equal(isTaken(pod, observed, 'unheard-of'), false);
  });
});

describe('containers created in advance for a restart', () => {
  async function runs(harness: PodRuntimeRig, pod: Pod) {
    assert.equal((await harness.sync(pod)).error, undefined);
    const observed = await harness.observe(pod);
    const [container] = observed.containers;
    assert.equal(container?.state, 'running');
    harness.takeCalls();
    return { observed: observed, containerId: container?.id ?? '' };
  }
  const prepare = (harness: PodRuntimeRig, pod: Pod, seen: { observed: ObservedPod; containerId: string }) =>
    harness.done(harness.runtime.prepareRestart({ pod, ...seen }, always, harness.signal));
  /** Waits until the creation of the container has finished. */
  const settled = (harness: PodRuntimeRig) => harness.done(harness.clock.sleep(1_000, harness.signal));
  const count = (harness: PodRuntimeRig, call: string) =>
    harness.takeCalls().filter((each) => each === call).length;

  it('a container is created in advance once, and started by the sync that observes the exit', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 3; exit 1' } });
    const observed = await runs(harness, pod);
    await prepare(harness, pod, observed);
    await prepare(harness, pod, observed);
    await settled(harness);
    const calls = harness.takeCalls();
    assert.equal(calls.filter((call) => call === 'createContainer').length, 1);
    assert.equal(calls.includes('startContainer'), false);
    await harness.done(harness.clock.sleep(5_000, harness.signal));
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.equal(count(harness, 'createContainer'), 0);
    const states = (await harness.observe(pod)).containers.map(
      ({ state, restartCount }) => `${state} ${restartCount}`,
    );
    assert.deepEqual(states, ['running 1', 'exited 0']);
    assert.equal(harness.runtime.pending().preparations, 0);
  });

  it('a container created in advance is discarded when the running one did not exit', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await prepare(harness, pod, await runs(harness, pod));
    await settled(harness);
    assert.equal((await harness.sync(pod)).error, undefined);
    const states = (await harness.observe(pod)).containers.map(({ state }) => state);
    assert.deepEqual(states, ['running']);
    assert.equal(harness.runtime.pending().preparations, 0);
  });

  it('no container is created in advance during back-off', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 3; exit 1' } });
    await runs(harness, pod);
    await harness.done(harness.clock.sleep(5_000, harness.signal));
    await prepare(harness, pod, await runs(harness, pod));
    await settled(harness);
    assert.equal(count(harness, 'createContainer'), 0);
  });

  it('no container is created in advance for a terminating pod, and a running creation is cancelled', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    const observed = await runs(harness, pod);
    let requestCount = 0;
    const notNow = () => requestCount++ === 0;
    await harness.done(harness.runtime.prepareRestart({ pod, ...observed }, notNow, harness.signal));
    await settled(harness);
    assert.equal(count(harness, 'createContainer'), 0);
    assert.equal((await harness.kill(pod, 1)).error, undefined);
    assert.equal(harness.runtime.pending().preparations, 0);
  });
});
