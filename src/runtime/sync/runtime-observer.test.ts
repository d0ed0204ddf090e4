import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { PodSandboxStatus } from '../../cri/index.ts';
import { ipsOf, observedSandbox } from './runtime-observer.ts';

describe('observing the runtime', () => {
  it('groups sandboxes and containers by pod, and ignores those without pod labels', async () => {
    using harness = new PodRuntimeRig();
    await harness.sync(podOf({ a: {} }, {}, 'one'));
    await harness.sync(podOf({ b: {} }, {}, 'two'));
    const strange = {
      metadata: { name: 'x', namespace: 'y', uid: 'z', attempt: 0 },
      logDirectory: '/logs/x',
    };
    await harness.done(harness.cri.runPodSandbox({ config: strange }, harness.signal));
    const pods = await harness.done(harness.runtime.listPods(harness.signal));
    assert.deepEqual(
      pods.map(({ uid, name, namespace, containers }) => [
        uid,
        name,
        namespace,
        containers.map((each) => each.name),
      ]),
      [
        ['uid-one', 'one', 'default', ['a']],
        ['uid-two', 'two', 'default', ['b']],
      ],
    );
    assert.equal(pods[0]?.sandboxes[0]?.state, 'running');
  });

  it('observes all details of a pod', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 3' } });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const { ips, sandboxes, containers } = await harness.observe(pod);
    const [container] = containers;
    assert.deepEqual(sandboxes[0]?.ips, ips);
    assert.equal(ips.length, 1);
    assert.deepEqual(
      [
        container?.exitCode,
        container?.reason,
        container?.runtimeName,
        container?.restartCount,
        container?.state,
      ],
      [3, 'Error', 'containerd', 0, 'exited'],
    );
    assert.equal(container?.sandboxId, sandboxes[0]?.id);
    assert.match(container?.hash ?? '', /^[0-9a-f]+$/);
    assert.ok((container?.finishedAtNs ?? 0n) >= (container?.startedAtNs ?? 1n));
  });

  it('the container with the higher attempt is the newer instance, even when the clock was set back', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 3' }, b: {} });
    await harness.sync(pod);
    await harness.clock.advance(1_000);
    harness.clock.jumpWall(-3_600_000);
    await harness.sync(pod);
    const { containers } = await harness.observe(pod);
    const listed = await harness.done(harness.runtime.listPod(pod.metadata.uid, harness.signal));
    const ofA = containers.filter(({ name }) => name === 'a');
    assert.deepEqual(
      ofA.map(({ restartCount }) => restartCount),
      [1, 0],
    );
    assert.deepEqual(
      listed?.containers.filter(({ name }) => name === 'a').map(({ id }) => id),
      ofA.map(({ id }) => id),
    );
    assert.equal(containers.length, 3);
  });

  it('omits containers and sandboxes that were removed since the listing', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const listed = await harness.done(harness.runtime.listPod(pod.metadata.uid, harness.signal));
    assert.ok(listed !== undefined);
    await harness.kill(pod);
    harness.gone.add(pod.metadata.uid);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    const observed = await harness.done(harness.runtime.observe(listed, harness.signal));
    assert.deepEqual([observed.sandboxes, observed.containers], [[], []]);
  });

  it('an observation fails when one CRI call fails', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await harness.sync(pod);
    const fault = { kind: 'error', code: 'UNAVAILABLE', message: 'away' } as const;
    harness.simulated.setFaults(scriptedFaults({ calls: [{ method: 'containerStatus', fault, nth: 2 }] }));
    await assert.rejects(harness.observe(pod), { code: 'CRI_UNAVAILABLE' });
  });

  it('reports no addresses of a sandbox when one of them is invalid', () => {
    const status = (ip: string, ...additional: string[]) =>
      ({ network: { ip, additionalIps: additional.map((each) => ({ ip: each })) } }) as unknown as Parameters<
        typeof ipsOf
      >[0];
    assert.deepEqual(ipsOf(status('10.0.0.1', 'fd00::1')), ['10.0.0.1', 'fd00::1']);
    assert.deepEqual(ipsOf(status('10.0.0.1', 'nonsense')), []);
    assert.deepEqual(ipsOf(status('')), []);
  });

  it('the sandbox with the highest attempt is the newest, regardless of creation times', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({});
    const labels = { 'io.kubernetes.pod.uid': pod.metadata.uid };
    for (const attempt of [1, 0]) {
      const metadata = { name: 'web', namespace: 'default', uid: pod.metadata.uid, attempt };
      await harness.done(
        harness.cri.runPodSandbox({ config: { metadata, labels, logDirectory: '/l' } }, harness.signal),
      );
      await harness.clock.advance(1_000);
    }
    const { sandboxes } = await harness.observe(pod);
    assert.deepEqual(
      sandboxes.map(({ attempt }) => attempt),
      [1, 0],
    );
  });

  it('a pod on the host network has no addresses of its sandbox', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    const real = harness.cri.podSandboxStatus;
    Object.assign(harness.cri, {
      podSandboxStatus: async (...args: Parameters<typeof real>) => {
        const response = await real(...args);
        const linux = { namespaces: { options: { network: 'NODE' } } };
        return { ...response, status: { ...response.status, linux } };
      },
    });
    await harness.sync(pod);
    const { sandboxes, ips } = await harness.observe(pod);
    assert.deepEqual([sandboxes[0]?.network, ips], ['node', []]);
  });

  it('reads the status of a ready sandbox only once', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const before = await harness.observe(pod);
    harness.takeCalls();
    assert.deepEqual((await harness.observe(pod)).sandboxes, before.sandboxes);
    assert.ok(!harness.takeCalls().includes('podSandboxStatus'));
    const { sandboxes } = await harness.observe(pod);
    await harness.done(harness.cri.stopPodSandbox({ podSandboxId: sandboxes[0]?.id ?? '' }, harness.signal));
    assert.equal((await harness.observe(pod)).sandboxes[0]?.state, 'not-ready');
    harness.takeCalls();
    assert.equal((await harness.observe(pod)).sandboxes[0]?.state, 'not-ready');
    assert.ok(!harness.takeCalls().includes('podSandboxStatus'), 'its status does not change');
  });

  it('retries reading a termination message after a read error', async () => {
    using harness = new PodRuntimeRig({
      script: () => ({ runMs: 10, exitCode: 1, terminationMessage: 'last' }),
    });
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const { readEnd } = harness.machine;
    Object.assign(harness.machine, {
      readEnd: async () => {
        throw new Error('too many open files');
      },
    });
    assert.match((await harness.newest(pod, 'a'))?.message ?? '', /^Error on reading .*too many open files$/);
    Object.assign(harness.machine, { readEnd });
    assert.equal((await harness.newest(pod, 'a'))?.message, 'last');
  });

  it("reads a termination message once, and again when the runtime's status of the container changes", async () => {
    using harness = new PodRuntimeRig({
      script: () => ({ runMs: 10, exitCode: 137, terminationMessage: 'last' }),
    });
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    await harness.clock.advance(100);
    let reads = 0;
    const { readEnd } = harness.machine;
    Object.assign(harness.machine, {
      readEnd: async (...args: Parameters<typeof readEnd>) => {
        reads++;
        return await readEnd(...args);
      },
    });
    const saying = async () => (await harness.newest(pod, 'a'))?.message;
    assert.deepEqual([await saying(), await saying(), reads], ['last', 'last', 1]);
    const real = harness.cri.containerStatus;
    Object.assign(harness.cri, {
      containerStatus: async (...args: Parameters<typeof real>) => {
        const response = await real(...args);
        return { ...response, status: { ...response.status, reason: 'OOMKilled', message: 'killed' } };
      },
    });
    assert.deepEqual([await saying(), reads], ['killed: last', 2]);
  });

  it('distinguishes a sandbox with an empty address from a sandbox without network status', () => {
    const seen = (network: PodSandboxStatus['network']) =>
      observedSandbox(PodSandboxStatus.create(network === undefined ? {} : { network })).unaddressed;
    assert.deepEqual(
      [seen({ ip: '', additionalIps: [] }), seen({ ip: 'x', additionalIps: [] }), seen(undefined)],
      [true, false, false],
    );
  });

  it('limits a termination message to its last 4096 bytes', async () => {
    using harness = new PodRuntimeRig({
      script: () => ({ runMs: 10, exitCode: 1, terminationMessage: `${'x'.repeat(5_000)}end` }),
    });
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const message = (await harness.newest(pod, 'a'))?.message ?? '';
    assert.deepEqual([message.length, message.slice(-3)], [4_096, 'end']);
  });

  it('limits a termination message from the log to 80 lines and 2048 bytes', async () => {
    const lines = Array.from({ length: 100 }, (_, at) => ({ atMs: 1, text: `${at} ${'y'.repeat(60)}\n` }));
    using harness = new PodRuntimeRig({ script: () => ({ runMs: 10, exitCode: 1, output: lines }) });
    const pod = podOf({ a: { terminationMessagePolicy: 'FallbackToLogsOnError' } });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const message = (await harness.newest(pod, 'a'))?.message ?? '';
    assert.equal(message.length, 2_048);
    assert.ok(message.endsWith(`99 ${'y'.repeat(60)}\n`));
  });
});
