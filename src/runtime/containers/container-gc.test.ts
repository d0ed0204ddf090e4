import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { podUid } from '../../pods/index.ts';

const crash = { script: 'exit 1' };

/** Runs the pod's container to completion the given number of times. */
async function runTimes(harness: PodRuntimeRig, pod: ReturnType<typeof podOf>, times: number): Promise<void> {
  for (let runs = 0; runs < times; runs++) {
    await harness.sync(pod);
    await harness.clock.advance(400_000);
  }
}

describe('garbage collection', () => {
  it('keeps the newest dead instance of each container of a desired pod', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: crash });
    await runTimes(harness, pod, 4);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const { containers } = await harness.observe(pod);
    assert.deepEqual(containers.map(({ name, restartCount }) => `${name} ${restartCount}`).toSorted(), [
      'a 3',
      'b 3',
    ]);
    assert.deepEqual(await harness.machine.names('/logs/pods/default_web_uid-web/a'), ['3.log']);
  });

  it('removes containers, sandboxes and logs of a deleted pod', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: {} }, { init: { setup: { script: 'echo x' } } });
    await runTimes(harness, pod, 3);
    await harness.kill(pod, 1);
    harness.gone.add(pod.metadata.uid);
    harness.takeCalls();
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.deepEqual(harness.takeCalls().slice(-2), ['stopPodSandbox', 'removePodSandbox']);
    const held = harness.simulated.held();
    assert.deepEqual([held.sandboxes, held.containers, held.names, held.addresses], [0, 0, 0, 0]);
    assert.deepEqual(await harness.machine.names('/logs/pods'), []);
    assert.deepEqual(await harness.machine.names('/logs/containers'), []);
    harness.runtime.forgetPod(pod.metadata.uid);
    assert.deepEqual(Object.values(harness.runtime.pending()), [0, 0, 0, 0, 0, 0, 0]);
  });

  it('collectPod removes all containers, sandboxes and logs of one stopped pod', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: {} });
    await runTimes(harness, pod, 3);
    await harness.kill(pod, 1);
    harness.takeCalls();
    await harness.done(harness.runtime.removePod(pod, harness.signal));
    assert.ok(!harness.takeCalls().includes('stopPodSandbox'), 'the sandbox was stopped before');
    const held = harness.simulated.held();
    assert.deepEqual([held.sandboxes, held.containers, held.names, held.addresses], [0, 0, 0, 0]);
    assert.deepEqual(await harness.machine.names('/logs/pods'), []);
    assert.deepEqual(await harness.machine.names('/logs/containers'), []);
  });

  it('removes no running containers and no sandboxes in use', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    harness.gone.add(pod.metadata.uid);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const observed = await harness.observe(pod);
    assert.deepEqual([observed.containers.length, observed.sandboxes.length], [1, 1]);
  });

  it('keeps all containers of a pod that the pod workers do not report as removable', async () => {
    using harness = new PodRuntimeRig({
      deps: {
        pods: {
          shouldPodContentBeRemoved: () => false,
          shouldPodRuntimeBeRemoved: () => false,
          secondsLeft: () => undefined,
        },
      },
    });
    const pod = podOf({ a: crash });
    await runTimes(harness, pod, 1);
    await harness.kill(pod, 1);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal((await harness.observe(pod)).containers.length, 1);
    assert.equal((await harness.machine.names('/logs/pods')).length, 1);
  });

  it('keeps the newest sandbox of a desired pod, even if it is dead', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    for (let times = 0; times < 3; times++) {
      await harness.sync(pod);
      await harness.kill(pod, 1);
      await harness.clock.advance(400_000);
    }
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const { sandboxes } = await harness.observe(pod);
    assert.deepEqual(
      sandboxes.map(({ attempt }) => attempt),
      [2],
    );
  });

  it('removes dead containers above the limit per node: first evenly from all containers, then the oldest', async () => {
    using harness = new PodRuntimeRig({
      deps: {
        settings: {
          runtimeName: 'containerd',
          podLogsDir: '/logs/pods',
          logLinksDir: '/logs/containers',
          pulls: { maxParallel: 1, qps: 0, burst: 0 },
          gc: { minAgeMs: 0, maxPerContainer: -1, maxContainers: 3 },
        },
      },
    });
    const pods = ['x', 'y'].map((name) => podOf({ a: crash }, {}, name));
    for (const pod of pods) await runTimes(harness, pod, 3);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const retained = await Promise.all(pods.map((pod) => harness.observe(pod)));
    assert.deepEqual(
      retained.map(({ containers }) => containers.map(({ restartCount }) => restartCount)),
      [[2], [2]],
    );
  });

  it('keeps dead containers below the minimum age', async () => {
    using harness = new PodRuntimeRig({
      deps: {
        settings: {
          runtimeName: 'containerd',
          podLogsDir: '/logs/pods',
          logLinksDir: '/logs/containers',
          pulls: { maxParallel: 1, qps: 0, burst: 0 },
          gc: { minAgeMs: 600_000, maxPerContainer: 0, maxContainers: -1 },
        },
      },
    });
    const pod = podOf({ a: crash });
    await runTimes(harness, pod, 2);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal((await harness.observe(pod)).containers.length, 1);
  });

  it('continues after a failed removal and reports all failures at the end', async () => {
    using harness = new PodRuntimeRig();
    const pods = ['x', 'y'].map((name) => podOf({ a: crash }, {}, name));
    for (const pod of pods) {
      await runTimes(harness, pod, 1);
      await harness.kill(pod, 1);
      harness.gone.add(pod.metadata.uid);
    }
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'removeContainer', fault, times: 1 }] }));
    await assert.rejects(harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal)), {
      code: 'CONTAINER_GC',
      message: /cannot remove container \w+: stuck$/,
    });
    assert.equal(harness.simulated.containers().length, 1);
    harness.simulated.setFaults(undefined);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal(harness.simulated.sandboxes().length, 0);
  });

  it('removes links to missing logs of dead containers', async () => {
    using harness = new PodRuntimeRig();
    const link = '/logs/containers/web_default_a-0123456789abcdef.log';
    await harness.machine.link('/logs/pods/nothing', link);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal(await harness.machine.readLink(link), undefined);
  });

  it('removes rotated logs together with the current log, but no log of another instance', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash });
    await runTimes(harness, pod, 2);
    const logs = '/logs/pods/default_web_uid-web/a';
    for (const name of [
      '0.log.20260101-000000',
      '0.log.20260101-000000.gz',
      '1.log.20260101-000000',
      '00.log',
    ])
      harness.files.write(`${logs}/${name}`, '');
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.deepEqual(await harness.machine.names(logs), ['00.log', '1.log', '1.log.20260101-000000']);
  });

  it('removes a link without a container ID only when the log directory it points to is missing', async () => {
    using harness = new PodRuntimeRig();
    const name = (letter: string) => `/logs/containers/${letter.repeat(251)}.log`;
    await harness.machine.makeDirectory('/logs/pods/default_web_uid-web/a', 0o755);
    await harness.machine.link('/logs/pods/default_web_uid-web/a/0.log', name('r'));
    await harness.machine.link('/logs/pods/default_old_uid-old/a/0.log', name('g'));
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.deepEqual(
      [await harness.machine.readLink(name('r')), await harness.machine.readLink(name('g'))],
      ['/logs/pods/default_web_uid-web/a/0.log', undefined],
    );
  });

  it('removes log directories of deleted pods that the runtime does not list, and no others', async () => {
    using harness = new PodRuntimeRig();
    harness.gone.add(podUid('uid-gone'));
    for (const path of ['default_old_uid-gone/a/0.log', 'default_web_uid-web/a/0.log', 'audit/today.log'])
      harness.files.write(`/logs/pods/${path}`, 'text');
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.deepEqual(await harness.machine.names('/logs/pods'), ['audit', 'default_web_uid-web']);
  });

  it('keeps a container whose logs cannot be removed, so that the removal is retried', async () => {
    let stuck = true;
    using harness = new PodRuntimeRig();
    const { removeLogs } = harness.machine;
    Object.assign(harness.machine, {
      removeLogs: async (path: string) => {
        if (stuck && path.endsWith('/0.log')) throw new Error('read-only file system');
        await removeLogs(path);
      },
    });
    const pod = podOf({ a: crash });
    await harness.sync(pod);
    await harness.clock.advance(100);
    await harness.kill(pod, 1);
    harness.gone.add(pod.metadata.uid);
    const collect = () => harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    await assert.rejects(collect(), /read-only file system/);
    assert.equal(harness.simulated.containers().length, 1);
    stuck = false;
    await collect();
    assert.equal(harness.simulated.containers().length, 0);
  });

  it('removes the termination message file together with its container', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash });
    await runTimes(harness, pod, 3);
    const files = () => harness.files.paths().filter((path) => path.startsWith('/pods/')).length;
    assert.equal(files(), 3);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal(files(), 1);
  });

  it('kills a container in unknown state before removing it', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const real = harness.cri.listContainers;
    Object.assign(harness.cri, {
      listContainers: async (...args: Parameters<typeof real>) => {
        const response = await real(...args);
        const containers = response.containers.map((each) => ({
          ...each,
          state: 'CONTAINER_UNKNOWN' as const,
        }));
        return { ...response, containers };
      },
    });
    harness.gone.add(pod.metadata.uid);
    harness.takeCalls();
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const calls = harness.takeCalls();
    assert.ok(calls.indexOf('stopContainer') >= 0, calls.join());
    assert.ok(calls.indexOf('stopContainer') < calls.indexOf('removeContainer'), calls.join());
    assert.deepEqual(harness.eventsOf('Killing'), [
      'Container is in unknown state, try killing it before removal',
    ]);
  });
});

describe('removing surplus dead containers', () => {
  it('removes older instances in the background after the newest instance of the container has died', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: crash });
    await runTimes(harness, pod, 3);
    const observed = await harness.observe(pod);
    const containerId = observed.containers.find(({ name }) => name === 'a')?.id ?? '';
    harness.runtime.deleteSurplus(observed, { kind: 'instances-of', containerId, keep: 1 });
    await harness.clock.advance(10_000);
    const left = (await harness.observe(pod)).containers.map(
      ({ name, restartCount }) => `${name} ${restartCount}`,
    );
    assert.deepEqual(left.toSorted(), ['a 2', 'b 0', 'b 1', 'b 2']);
    harness.runtime.deleteSurplus(await harness.observe(pod), { kind: 'all' });
    await harness.clock.advance(10_000);
    assert.equal(harness.simulated.containers().length, 0);
    assert.equal(harness.runtime.pending().deletions, 0);
  });
});
