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
async function makeOnly(rig: PodRuntimeRig, pod: Pod): Promise<void> {
  const hang = { method: 'startContainer', fault: { kind: 'hang' }, times: 1 } as const;
  rig.simulated.setFaults(scriptedFaults({ calls: [hang] }));
  const controller = new AbortController();
  rig.clock.timer(5_000, () => controller.abort(cancelledError('kubeling ends')));
  await assert.rejects(rig.sync(pod, controller.signal), /kubeling ends/);
  rig.simulated.setFaults(undefined);
}

async function instances(rig: PodRuntimeRig, pod: Pod): Promise<readonly string[]> {
  const { containers } = await rig.observe(pod);
  return containers.map(({ name, state, restartCount }) => `${name} ${state} ${restartCount}`);
}

describe('starting a container', () => {
  it('reuses a created container only if it has the same spec hash', async () => {
    for (const [image, created] of [
      [busybox, 0],
      [other, 1],
    ] as const) {
      using rig = new PodRuntimeRig({ images });
      await makeOnly(rig, podOf({ a: {} }));
      rig.takeCalls();
      const pod = podOf({ a: { image } });
      assert.equal((await rig.sync(pod)).error, undefined);
      assert.equal(rig.takeCalls().filter((call) => call === 'createContainer').length, created);
      assert.deepEqual(await instances(rig, pod), ['a running 0'], 'nothing is started again');
    }
  });

  it('replaces a container that the runtime failed to start', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    rig.simulated.setFaults(
      scriptedFaults({ calls: [{ method: 'startContainer', fault: refused, times: 1 }] }),
    );
    assert.equal((await rig.sync(pod)).actions.at(-1)?.failure?.reason, 'RunContainerError');
    assert.equal((await rig.sync(pod)).error, undefined);
    assert.deepEqual(await instances(rig, pod), ['a running 0']);
  });

  it('creates a log directory that is readable for all users', async () => {
    using rig = new PodRuntimeRig();
    const made: [string, number][] = [];
    const { makeDirectoryBelow } = rig.machine;
    Object.assign(rig.machine, {
      makeDirectoryBelow: async (root: string, inside: string, mode: number) => {
        made.push([`${root}/${inside}`, mode]);
        await makeDirectoryBelow(root, inside, mode);
      },
    });
    await rig.sync(podOf({ a: {} }));
    assert.deepEqual(made, [
      ['/logs/pods/default_web_uid-web', 0o755],
      ['/logs/pods/default_web_uid-web/a', 0o755],
    ]);
  });

  it('creates no link when the log file is missing', async () => {
    using rig = new PodRuntimeRig();
    Object.assign(rig.machine, { exists: async () => false });
    assert.equal((await rig.sync(podOf({ a: {} }))).error, undefined);
    assert.deepEqual(await rig.machine.names('/logs/containers'), []);
  });
});

describe('init containers', () => {
  it('keeps one exited instance of each init container', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ main: {} }, { init: { setup: { script: 'exit 1' } } });
    for (let tries = 0; tries < 4; tries++) {
      await rig.sync(pod);
      await rig.clock.advance(200_000);
    }
    assert.deepEqual(await instances(rig, pod), ['setup exited 3', 'setup exited 2']);
  });

  it('removes all init containers before the first one runs in a new sandbox', async () => {
    using rig = new PodRuntimeRig();
    const init = { one: { script: 'exit 0' }, two: { script: 'exit 0' } };
    const pod = podOf({ main: {} }, { init });
    for (let syncs = 0; syncs < 3; syncs++) {
      await rig.sync(pod);
      await rig.clock.advance(100);
    }
    rig.simulated.crashSandbox((await rig.observe(pod)).sandboxes[0]?.id ?? '');
    await rig.clock.advance(100);
    await rig.sync(pod);
    const names = (await rig.observe(pod)).containers.map(({ name }) => name);
    assert.deepEqual(names.toSorted(), ['main', 'one']);
  });
});

describe('a container that is to be replaced', () => {
  it('blocks the start of its replacement when it cannot be stopped', async () => {
    using rig = new PodRuntimeRig({ images });
    await rig.sync(podOf({ a: {}, b: {} }));
    const changed = podOf({ a: { image: other }, b: {} });
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'stopContainer', fault: refused }] }));
    const result = await rig.sync(changed);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'KillContainerError');
    assert.deepEqual((await instances(rig, changed)).toSorted(), ['a running 0', 'b running 0']);
    rig.simulated.setFaults(undefined);
    assert.equal((await rig.sync(changed)).error, undefined);
    assert.deepEqual((await instances(rig, changed)).toSorted(), [
      'a exited 0',
      'a running 1',
      'b running 0',
    ]);
    assert.equal(rig.eventsOf('Killing').at(-1), 'Container a definition changed, will be restarted');
  });
});
