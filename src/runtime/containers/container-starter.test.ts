import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { busybox, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

const other = 'localhost/other:1';
const images = [busybox, other].map((reference) => ({ reference, command: ['sh'], env: { PATH: '/bin' } }));
const refused = { kind: 'error', code: 'UNKNOWN', message: 'no such file' } as const;

/** Creates the pod's container and cancels the sync before StartContainer. */
async function makeOnly(harness: PodRuntimeRig, pod: Pod): Promise<void> {
  const hang = { method: 'startContainer', fault: { kind: 'hang' }, times: 1 } as const;
  harness.simulated.setFaults(scriptedFaults({ calls: [hang] }));
  const controller = new AbortController();
  harness.clock.timer(5_000, () => controller.abort(cancelledError('kubeling ends')));
  await assert.rejects(harness.sync(pod, controller.signal), /kubeling ends/);
  harness.simulated.setFaults(undefined);
}

async function instances(harness: PodRuntimeRig, pod: Pod): Promise<readonly string[]> {
  const { containers } = await harness.observe(pod);
  return containers.map(({ name, state, restartCount }) => `${name} ${state} ${restartCount}`);
}

describe('starting a container', () => {
  it('reuses a created container only if it has the same spec hash', async () => {
    for (const [image, created] of [
      [busybox, 0],
      [other, 1],
    ] as const) {
      using harness = new PodRuntimeRig({ images });
      await makeOnly(harness, podOf({ a: {} }));
      harness.takeCalls();
      const pod = podOf({ a: { image } });
      assert.equal((await harness.sync(pod)).error, undefined);
      assert.equal(harness.takeCalls().filter((call) => call === 'createContainer').length, created);
      assert.deepEqual(await instances(harness, pod), ['a running 0'], 'nothing is started again');
    }
  });

  it('replaces a container instance for which StartContainer failed', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    harness.simulated.setFaults(
      scriptedFaults({ calls: [{ method: 'startContainer', fault: refused, times: 1 }] }),
    );
    assert.equal((await harness.sync(pod)).actions.at(-1)?.failure?.reason, 'RunContainerError');
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.deepEqual(await instances(harness, pod), ['a running 0']);
  });

  it("creates the container's log directory readable for all users", async () => {
    using harness = new PodRuntimeRig();
    const created: [string, number][] = [];
    const { makeDirectoryBelow } = harness.machine;
    Object.assign(harness.machine, {
      makeDirectoryBelow: async (root: string, inside: string, mode: number) => {
        created.push([`${root}/${inside}`, mode]);
        await makeDirectoryBelow(root, inside, mode);
      },
    });
    await harness.sync(podOf({ a: {} }));
    assert.deepEqual(created, [
      ['/logs/pods/default_web_uid-web', 0o755],
      ['/logs/pods/default_web_uid-web/a', 0o755],
    ]);
  });

  it('creates no log link when the log file is missing', async () => {
    using harness = new PodRuntimeRig();
    Object.assign(harness.machine, { exists: async () => false });
    assert.equal((await harness.sync(podOf({ a: {} }))).error, undefined);
    assert.deepEqual(await harness.machine.names('/logs/containers'), []);
  });
});

describe('init containers', () => {
  it('keeps only the newest exited instance of an init container when the next instance starts', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ main: {} }, { init: { setup: { script: 'exit 1' } } });
    for (let tries = 0; tries < 4; tries++) {
      await harness.sync(pod);
      await harness.clock.advance(200_000);
    }
    assert.deepEqual(await instances(harness, pod), ['setup exited 3', 'setup exited 2']);
  });

  it('removes the exited init containers before the first one runs in a new sandbox', async () => {
    using harness = new PodRuntimeRig();
    const init = { one: { script: 'exit 0' }, two: { script: 'exit 0' } };
    const pod = podOf({ main: {} }, { init });
    for (let syncs = 0; syncs < 3; syncs++) {
      await harness.sync(pod);
      await harness.clock.advance(100);
    }
    harness.simulated.crashSandbox((await harness.observe(pod)).sandboxes[0]?.id ?? '');
    await harness.clock.advance(100);
    await harness.sync(pod);
    const names = (await harness.observe(pod)).containers.map(({ name }) => name);
    assert.deepEqual(names.toSorted(), ['main', 'one']);
  });
});

describe('a container with a changed spec', () => {
  it('does not start the replacement of a container that cannot be stopped', async () => {
    using harness = new PodRuntimeRig({ images });
    await harness.sync(podOf({ a: {}, b: {} }));
    const changed = podOf({ a: { image: other }, b: {} });
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault: refused }] }));
    const result = await harness.sync(changed);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'KillContainerError');
    assert.deepEqual((await instances(harness, changed)).toSorted(), ['a running 0', 'b running 0']);
    harness.simulated.setFaults(undefined);
    assert.equal((await harness.sync(changed)).error, undefined);
    assert.deepEqual((await instances(harness, changed)).toSorted(), [
      'a exited 0',
      'a running 1',
      'b running 0',
    ]);
    assert.equal(harness.eventsOf('Killing').at(-1), 'Container a definition changed, will be restarted');
  });
});
