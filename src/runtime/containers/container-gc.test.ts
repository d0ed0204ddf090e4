import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { podUid } from '../../pods/index.ts';

const crash = { script: 'exit 1' };

/** Runs the pod's container the given number of times. */
async function runTimes(rig: PodRuntimeRig, pod: ReturnType<typeof podOf>, times: number): Promise<void> {
  for (let runs = 0; runs < times; runs++) {
    await rig.sync(pod);
    await rig.clock.advance(400_000);
  }
}

describe('garbage collection', () => {
  it('keeps the newest dead instance of each container of a desired pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: crash });
    await runTimes(rig, pod, 4);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const { containers } = await rig.observe(pod);
    assert.deepEqual(containers.map(({ name, restartCount }) => `${name} ${restartCount}`).toSorted(), [
      'a 3',
      'b 3',
    ]);
    assert.deepEqual(await rig.machine.names('/logs/pods/default_web_uid-web/a'), ['3.log']);
  });

  it('removes containers, sandboxes and logs of a deleted pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: {} }, { init: { setup: { script: 'echo x' } } });
    await runTimes(rig, pod, 3);
    await rig.kill(pod, 1);
    rig.gone.add(pod.metadata.uid);
    rig.takeCalls();
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.deepEqual(rig.takeCalls().slice(-2), ['stopPodSandbox', 'removePodSandbox']);
    const held = rig.simulated.held();
    assert.deepEqual([held.sandboxes, held.containers, held.names, held.addresses], [0, 0, 0, 0]);
    assert.deepEqual(await rig.machine.names('/logs/pods'), []);
    assert.deepEqual(await rig.machine.names('/logs/containers'), []);
    rig.runtime.forgetPod(pod.metadata.uid);
    assert.deepEqual(Object.values(rig.runtime.pending()), [0, 0, 0, 0, 0, 0, 0]);
  });

  it('collectPod removes everything of one stopped pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: {} });
    await runTimes(rig, pod, 3);
    await rig.kill(pod, 1);
    rig.takeCalls();
    await rig.done(rig.runtime.removePod(pod, rig.signal));
    assert.ok(!rig.takeCalls().includes('stopPodSandbox'), 'the sandbox was stopped before');
    const held = rig.simulated.held();
    assert.deepEqual([held.sandboxes, held.containers, held.names, held.addresses], [0, 0, 0, 0]);
    assert.deepEqual(await rig.machine.names('/logs/pods'), []);
    assert.deepEqual(await rig.machine.names('/logs/containers'), []);
  });

  it('removes no running container and no sandbox in use', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    rig.gone.add(pod.metadata.uid);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const observed = await rig.observe(pod);
    assert.deepEqual([observed.containers.length, observed.sandboxes.length], [1, 1]);
  });

  it('keeps everything of a pod that the workers do not report as removable', async () => {
    using rig = new PodRuntimeRig({
      deps: {
        pods: {
          shouldPodContentBeRemoved: () => false,
          shouldPodRuntimeBeRemoved: () => false,
          secondsLeft: () => undefined,
        },
      },
    });
    const pod = podOf({ a: crash });
    await runTimes(rig, pod, 1);
    await rig.kill(pod, 1);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.equal((await rig.observe(pod)).containers.length, 1);
    assert.equal((await rig.machine.names('/logs/pods')).length, 1);
  });

  it('keeps the newest dead sandbox of a desired pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    for (let times = 0; times < 3; times++) {
      await rig.sync(pod);
      await rig.kill(pod, 1);
      await rig.clock.advance(400_000);
    }
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const { sandboxes } = await rig.observe(pod);
    assert.deepEqual(
      sandboxes.map(({ attempt }) => attempt),
      [2],
    );
  });

  it('limits dead containers per node: evenly per container first, then oldest first', async () => {
    using rig = new PodRuntimeRig({
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
    for (const pod of pods) await runTimes(rig, pod, 3);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const kept = await Promise.all(pods.map((pod) => rig.observe(pod)));
    assert.deepEqual(
      kept.map(({ containers }) => containers.map(({ restartCount }) => restartCount)),
      [[2], [2]],
    );
  });

  it('keeps dead containers below the minimum age', async () => {
    using rig = new PodRuntimeRig({
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
    await runTimes(rig, pod, 2);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.equal((await rig.observe(pod)).containers.length, 1);
  });

  it('continues after a failed removal and reports all failures', async () => {
    using rig = new PodRuntimeRig();
    const pods = ['x', 'y'].map((name) => podOf({ a: crash }, {}, name));
    for (const pod of pods) {
      await runTimes(rig, pod, 1);
      await rig.kill(pod, 1);
      rig.gone.add(pod.metadata.uid);
    }
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'stuck' } as const;
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'removeContainer', fault, times: 1 }] }));
    await assert.rejects(rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal)), {
      code: 'CONTAINER_GC',
      message: /cannot remove container \w+: stuck$/,
    });
    assert.equal(rig.simulated.containers().length, 1);
    rig.simulated.setFaults(undefined);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.equal(rig.simulated.sandboxes().length, 0);
  });

  it('removes links to missing logs of dead containers', async () => {
    using rig = new PodRuntimeRig();
    const link = '/logs/containers/web_default_a-0123456789abcdef.log';
    await rig.machine.link('/logs/pods/nothing', link);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.equal(await rig.machine.readLink(link), undefined);
  });

  it('removes rotated logs together with the current log, but no log of another instance', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash });
    await runTimes(rig, pod, 2);
    const logs = '/logs/pods/default_web_uid-web/a';
    for (const name of [
      '0.log.20260101-000000',
      '0.log.20260101-000000.gz',
      '1.log.20260101-000000',
      '00.log',
    ])
      rig.files.write(`${logs}/${name}`, '');
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.deepEqual(await rig.machine.names(logs), ['00.log', '1.log', '1.log.20260101-000000']);
  });

  it('removes a link without a container id only when its log directory is missing', async () => {
    using rig = new PodRuntimeRig();
    const name = (letter: string) => `/logs/containers/${letter.repeat(251)}.log`;
    await rig.machine.makeDirectory('/logs/pods/default_web_uid-web/a', 0o755);
    await rig.machine.link('/logs/pods/default_web_uid-web/a/0.log', name('r'));
    await rig.machine.link('/logs/pods/default_old_uid-old/a/0.log', name('g'));
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.deepEqual(
      [await rig.machine.readLink(name('r')), await rig.machine.readLink(name('g'))],
      ['/logs/pods/default_web_uid-web/a/0.log', undefined],
    );
  });

  it('removes log directories of deleted pods that the runtime does not list, and no others', async () => {
    using rig = new PodRuntimeRig();
    rig.gone.add(podUid('uid-gone'));
    for (const path of ['default_old_uid-gone/a/0.log', 'default_web_uid-web/a/0.log', 'audit/today.log'])
      rig.files.write(`/logs/pods/${path}`, 'text');
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.deepEqual(await rig.machine.names('/logs/pods'), ['audit', 'default_web_uid-web']);
  });

  it('keeps a container whose logs cannot be removed, so that the removal is retried', async () => {
    let stuck = true;
    using rig = new PodRuntimeRig();
    const { removeLogs } = rig.machine;
    Object.assign(rig.machine, {
      removeLogs: async (path: string) => {
        if (stuck && path.endsWith('/0.log')) throw new Error('read-only file system');
        await removeLogs(path);
      },
    });
    const pod = podOf({ a: crash });
    await rig.sync(pod);
    await rig.clock.advance(100);
    await rig.kill(pod, 1);
    rig.gone.add(pod.metadata.uid);
    const collect = () => rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    await assert.rejects(collect(), /read-only file system/);
    assert.equal(rig.simulated.containers().length, 1);
    stuck = false;
    await collect();
    assert.equal(rig.simulated.containers().length, 0);
  });

  it('removes the termination message file together with its container', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash });
    await runTimes(rig, pod, 3);
    const files = () => rig.files.paths().filter((path) => path.startsWith('/pods/')).length;
    assert.equal(files(), 3);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    assert.equal(files(), 1);
  });

  it('kills a container in unknown state before removing it', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    const real = rig.cri.listContainers;
    Object.assign(rig.cri, {
      listContainers: async (...args: Parameters<typeof real>) => {
        const answer = await real(...args);
        const containers = answer.containers.map((each) => ({
          ...each,
          state: 'CONTAINER_UNKNOWN' as const,
        }));
        return { ...answer, containers };
      },
    });
    rig.gone.add(pod.metadata.uid);
    rig.takeCalls();
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const calls = rig.takeCalls();
    assert.ok(calls.indexOf('stopContainer') >= 0, calls.join());
    assert.ok(calls.indexOf('stopContainer') < calls.indexOf('removeContainer'), calls.join());
    assert.deepEqual(rig.eventsOf('Killing'), [
      'Container is in unknown state, try killing it before removal',
    ]);
  });
});

describe('removing surplus dead containers', () => {
  it('removes older instances of the container that died, in the background', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: crash, b: crash });
    await runTimes(rig, pod, 3);
    const observed = await rig.observe(pod);
    const containerId = observed.containers.find(({ name }) => name === 'a')?.id ?? '';
    rig.runtime.deleteSurplus(observed, { kind: 'instances-of', containerId, keep: 1 });
    await rig.clock.advance(10_000);
    const left = (await rig.observe(pod)).containers.map(
      ({ name, restartCount }) => `${name} ${restartCount}`,
    );
    assert.deepEqual(left.toSorted(), ['a 2', 'b 0', 'b 1', 'b 2']);
    rig.runtime.deleteSurplus(await rig.observe(pod), { kind: 'all' });
    await rig.clock.advance(10_000);
    assert.equal(rig.simulated.containers().length, 0);
    assert.equal(rig.runtime.pending().deletions, 0);
  });
});
