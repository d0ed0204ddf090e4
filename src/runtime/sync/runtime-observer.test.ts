import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { PodSandboxStatus } from '../../cri/index.ts';
import { ipsOf, observedSandbox } from './runtime-observer.ts';

describe('looking at the runtime', () => {
  it('groups by pod what is ours, and leaves the rest alone', async () => {
    using rig = new PodRuntimeRig();
    await rig.sync(podOf({ a: {} }, {}, 'one'));
    await rig.sync(podOf({ b: {} }, {}, 'two'));
    const strange = {
      metadata: { name: 'x', namespace: 'y', uid: 'z', attempt: 0 },
      logDirectory: '/logs/x',
    };
    await rig.done(rig.cri.runPodSandbox({ config: strange }, rig.signal));
    const pods = await rig.done(rig.runtime.listPods(rig.signal));
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

  it('tells all there is to know of a pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 3' } });
    await rig.sync(pod);
    await rig.clock.advance(100);
    const { ips, sandboxes, containers } = await rig.observe(pod);
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

  it('takes the later attempt for the newer instance, also when the clock was set back between them', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 3' }, b: {} });
    await rig.sync(pod);
    await rig.clock.advance(1_000);
    rig.clock.jumpWall(-3_600_000);
    await rig.sync(pod);
    const { containers } = await rig.observe(pod);
    const listed = await rig.done(rig.runtime.listPod(pod.metadata.uid, rig.signal));
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

  it('leaves out what went away since it was listed', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    const listed = await rig.done(rig.runtime.listPod(pod.metadata.uid, rig.signal));
    assert.ok(listed !== undefined);
    await rig.kill(pod);
    rig.gone.add(pod.metadata.uid);
    await rig.done(rig.runtime.garbageCollect('deleted-pods', rig.signal));
    const observed = await rig.done(rig.runtime.observe(listed, rig.signal));
    assert.deepEqual([observed.sandboxes, observed.containers], [[], []]);
  });

  it('fails when the runtime does, rather than showing half of a pod', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await rig.sync(pod);
    const fault = { kind: 'error', code: 'UNAVAILABLE', message: 'away' } as const;
    rig.simulated.setFaults(scriptedFaults({ calls: [{ method: 'containerStatus', fault, nth: 2 }] }));
    await assert.rejects(rig.observe(pod), { code: 'CRI_UNAVAILABLE' });
  });

  it('believes all addresses of a sandbox or none', () => {
    const status = (ip: string, ...additional: string[]) =>
      ({ network: { ip, additionalIps: additional.map((each) => ({ ip: each })) } }) as unknown as Parameters<
        typeof ipsOf
      >[0];
    assert.deepEqual(ipsOf(status('10.0.0.1', 'fd00::1')), ['10.0.0.1', 'fd00::1']);
    assert.deepEqual(ipsOf(status('10.0.0.1', 'nonsense')), []);
    assert.deepEqual(ipsOf(status('')), []);
  });

  it('takes the highest attempt for the newest sandbox, whenever it was made', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({});
    const labels = { 'io.kubernetes.pod.uid': pod.metadata.uid };
    for (const attempt of [1, 0]) {
      const metadata = { name: 'web', namespace: 'default', uid: pod.metadata.uid, attempt };
      await rig.done(rig.cri.runPodSandbox({ config: { metadata, labels, logDirectory: '/l' } }, rig.signal));
      await rig.clock.advance(1_000);
    }
    const { sandboxes } = await rig.observe(pod);
    assert.deepEqual(
      sandboxes.map(({ attempt }) => attempt),
      [1, 0],
    );
  });

  it('gives a pod on the host network no address of its own, whatever the runtime says', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    const real = rig.cri.podSandboxStatus;
    Object.assign(rig.cri, {
      podSandboxStatus: async (...args: Parameters<typeof real>) => {
        const answer = await real(...args);
        const linux = { namespaces: { options: { network: 'NODE' } } };
        return { ...answer, status: { ...answer.status, linux } };
      },
    });
    await rig.sync(pod);
    const { sandboxes, ips } = await rig.observe(pod);
    assert.deepEqual([sandboxes[0]?.network, ips], ['node', []]);
  });

  it('asks for what a sandbox is only once while it is ready', async () => {
    using rig = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    const before = await rig.observe(pod);
    rig.takeCalls();
    assert.deepEqual((await rig.observe(pod)).sandboxes, before.sandboxes);
    assert.ok(!rig.takeCalls().includes('podSandboxStatus'));
    const { sandboxes } = await rig.observe(pod);
    await rig.done(rig.cri.stopPodSandbox({ podSandboxId: sandboxes[0]?.id ?? '' }, rig.signal));
    assert.equal((await rig.observe(pod)).sandboxes[0]?.state, 'not-ready');
    rig.takeCalls();
    assert.equal((await rig.observe(pod)).sandboxes[0]?.state, 'not-ready');
    assert.ok(!rig.takeCalls().includes('podSandboxStatus'), 'nothing of it changes any more');
  });

  it('reads the last words of a container again as long as they cannot be read', async () => {
    using rig = new PodRuntimeRig({ script: () => ({ runMs: 10, exitCode: 1, terminationMessage: 'last' }) });
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    await rig.clock.advance(100);
    const { readEnd } = rig.machine;
    Object.assign(rig.machine, {
      readEnd: async () => {
        throw new Error('too many open files');
      },
    });
    assert.match((await rig.newest(pod, 'a'))?.message ?? '', /^Error on reading .*too many open files$/);
    Object.assign(rig.machine, { readEnd });
    assert.equal((await rig.newest(pod, 'a'))?.message, 'last');
  });

  it('reads the last words of a container once, and again when the runtime tells more of its end', async () => {
    using rig = new PodRuntimeRig({
      script: () => ({ runMs: 10, exitCode: 137, terminationMessage: 'last' }),
    });
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    await rig.clock.advance(100);
    let reads = 0;
    const { readEnd } = rig.machine;
    Object.assign(rig.machine, {
      readEnd: async (...args: Parameters<typeof readEnd>) => {
        reads++;
        return await readEnd(...args);
      },
    });
    const saying = async () => (await rig.newest(pod, 'a'))?.message;
    assert.deepEqual([await saying(), await saying(), reads], ['last', 'last', 1]);
    const real = rig.cri.containerStatus;
    Object.assign(rig.cri, {
      containerStatus: async (...args: Parameters<typeof real>) => {
        const answer = await real(...args);
        return { ...answer, status: { ...answer.status, reason: 'OOMKilled', message: 'killed' } };
      },
    });
    assert.deepEqual([await saying(), reads], ['killed: last', 2]);
  });

  it('tells a network without an address from one it is not told of', () => {
    const seen = (network: PodSandboxStatus['network']) =>
      observedSandbox(PodSandboxStatus.create(network === undefined ? {} : { network })).unaddressed;
    assert.deepEqual(
      [seen({ ip: '', additionalIps: [] }), seen({ ip: 'x', additionalIps: [] }), seen(undefined)],
      [true, false, false],
    );
  });

  it('shows no more of a message than its last 4096 bytes', async () => {
    using rig = new PodRuntimeRig({
      script: () => ({ runMs: 10, exitCode: 1, terminationMessage: `${'x'.repeat(5_000)}end` }),
    });
    const pod = podOf({ a: {} });
    await rig.sync(pod);
    await rig.clock.advance(100);
    const message = (await rig.newest(pod, 'a'))?.message ?? '';
    assert.deepEqual([message.length, message.slice(-3)], [4_096, 'end']);
  });

  it('shows no more of a log than 80 lines and 2048 bytes', async () => {
    const lines = Array.from({ length: 100 }, (_, at) => ({ atMs: 1, text: `${at} ${'y'.repeat(60)}\n` }));
    using rig = new PodRuntimeRig({ script: () => ({ runMs: 10, exitCode: 1, output: lines }) });
    const pod = podOf({ a: { terminationMessagePolicy: 'FallbackToLogsOnError' } });
    await rig.sync(pod);
    await rig.clock.advance(100);
    const message = (await rig.newest(pod, 'a'))?.message ?? '';
    assert.equal(message.length, 2_048);
    assert.ok(message.endsWith(`99 ${'y'.repeat(60)}\n`));
  });
});
