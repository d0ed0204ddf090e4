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

describe('an announced exit', () => {
  const isTaken = (pod: Pod, seen: ObservedPod = observed, id = running.id) =>
    announcedExit(pod, seen, id, 5_000) !== undefined;

  it('counts only if the container restarts with any exit code', () => {
    const rules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }];
    assert.equal(isTaken(aPod({ spec: { containers: [main] } })), true);
    assert.equal(isTaken(aPod({ spec: { containers: [main], restartPolicy: 'OnFailure' } })), false);
    assert.equal(isTaken(aPod({ spec: { containers: [main], restartPolicy: 'Never' } })), false);
    assert.equal(isTaken(aPod({ spec: { containers: [{ ...main, restartPolicyRules: rules }] } })), false);
  });

  it('is ignored for a deleted pod and a changed container', () => {
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

  it('is ignored unless the container is the newest instance and runs in the current sandbox', () => {
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

describe('a prepared restart', () => {
  async function runs(rig: PodRuntimeRig, pod: Pod) {
    assert.equal((await rig.sync(pod)).error, undefined);
    const seen = await rig.observe(pod);
    const [container] = seen.containers;
    assert.equal(container?.state, 'running');
    rig.takeCalls();
    return { observed: seen, containerId: container?.id ?? '' };
  }
  const prepare = (rig: PodRuntimeRig, pod: Pod, seen: { observed: ObservedPod; containerId: string }) =>
    rig.done(rig.runtime.prepareRestart({ pod, ...seen }, always, rig.signal));
  /** Lets the running creation finish. */
  const settled = (rig: PodRuntimeRig) => rig.done(rig.clock.sleep(1_000, rig.signal));
  const count = (rig: PodRuntimeRig, call: string) => rig.takeCalls().filter((one) => one === call).length;

  it('is created once and started by the sync that observes the exit', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 3; exit 1' } });
    const seen = await runs(rig, pod);
    await prepare(rig, pod, seen);
    await prepare(rig, pod, seen);
    await settled(rig);
    const calls = rig.takeCalls();
    assert.equal(calls.filter((call) => call === 'createContainer').length, 1);
    assert.equal(calls.includes('startContainer'), false);
    await rig.done(rig.clock.sleep(5_000, rig.signal));
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.equal(count(rig, 'createContainer'), 0);
    const states = (await rig.observe(pod)).containers.map(
      ({ state, restartCount }) => `${state} ${restartCount}`,
    );
    assert.deepEqual(states, ['running 1', 'exited 0']);
    assert.equal(rig.runtime.pending().preparations, 0);
  });

  it('is discarded when the container keeps running', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await prepare(rig, pod, await runs(rig, pod));
    await settled(rig);
    assert.equal((await rig.sync(pod)).error, undefined);
    const states = (await rig.observe(pod)).containers.map(({ state }) => state);
    assert.deepEqual(states, ['running']);
    assert.equal(rig.runtime.pending().preparations, 0);
  });

  it('is not created while the container is in back-off', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'sleep 3; exit 1' } });
    await runs(rig, pod);
    await rig.done(rig.clock.sleep(5_000, rig.signal));
    await prepare(rig, pod, await runs(rig, pod));
    await settled(rig);
    assert.equal(count(rig, 'createContainer'), 0);
  });

  it('is not created for a pod that ends, and cancelled with it', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    const seen = await runs(rig, pod);
    let asked = 0;
    const notNow = () => asked++ === 0;
    await rig.done(rig.runtime.prepareRestart({ pod, ...seen }, notNow, rig.signal));
    await settled(rig);
    assert.equal(count(rig, 'createContainer'), 0);
    assert.equal((await rig.kill(pod, 1)).error, undefined);
    assert.equal(rig.runtime.pending().preparations, 0);
  });
});
