import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { busybox, noProbes, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { scriptedFaults } from '../../../test/simulator/index.ts';
import { cancelledError } from '../../lib/index.ts';
import type { ObservedPod } from '../../pods/index.ts';

const ignoreBig = (_key: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);

describe('syncing a pod', () => {
  it('starts sandbox and containers of a new pod with the minimum of CRI calls', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    const observed = await harness.observe(pod);
    harness.takeCalls();
    const ready: ObservedPod[] = [];
    const result = await harness.done(
      harness.runtime.syncPod(
        { pod, observed, context: noProbes, sandboxReady: (now) => ready.push(now) },
        harness.signal,
      ),
    );
    assert.equal(result.error, undefined);
    assert.deepEqual(harness.takeCalls(), [
      'imageStatus',
      'runPodSandbox',
      'podSandboxStatus',
      'createContainer',
      'startContainer',
      'createContainer',
      'startContainer',
    ]);
    assert.deepEqual(
      ready.map(({ ips, sandboxes }) => [
        ips.length,
        sandboxes.map(({ state, attempt }) => [state, attempt]),
      ]),
      [[1, [['ready', 0]]]],
    );
    assert.deepEqual(
      harness.simulated.runningContainers().map(({ name }) => name),
      ['a', 'b'],
    );
    assert.deepEqual(
      harness.events.map(({ reason, fieldPath }) => `${reason} ${fieldPath ?? ''}`),
      [
        'Pulled spec.containers{a}',
        'Created spec.containers{a}',
        'Pulled spec.containers{b}',
        'Created spec.containers{b}',
        'Started spec.containers{a}',
        'Started spec.containers{b}',
      ],
    );
  });

  it('does nothing for a pod that matches its spec', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const observed = await harness.observe(pod);
    harness.takeCalls();
    const result = await harness.done(
      harness.runtime.syncPod({ pod, observed, context: noProbes }, harness.signal),
    );
    assert.deepEqual([result.actions, harness.takeCalls()], [[], []]);
  });

  it('runs one init container per sync, in order, before the regular containers', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ main: {} }, { init: { one: { script: 'exit 0' }, two: { script: 'exit 0' } } });
    for (let syncs = 0; syncs < 3; syncs++) {
      const result = await harness.sync(pod);
      assert.equal(result.error, undefined);
      await harness.clock.advance(100);
    }
    const started = harness.simulated.trace.entries().filter(({ kind }) => kind === 'container-started');
    assert.deepEqual(
      started.map((entry) => ('name' in entry ? entry.name : '')),
      ['one', 'two', 'main'],
    );
  });

  it('links the log of a started container, and removes the link together with the container', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'echo hello; sleep 1000' } });
    await harness.sync(pod);
    const id = (await harness.newest(pod, 'a'))?.id ?? '';
    const link = `/logs/containers/web_default_a-${id}.log`;
    assert.equal(await harness.machine.readLink(link), '/logs/pods/default_web_uid-web/a/0.log');
    await harness.kill(pod, 1);
    harness.gone.add(pod.metadata.uid);
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.equal(await harness.machine.readLink(link), undefined);
  });

  it('restarts a container immediately, then after 10 s, doubling the delay up to 300 s', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 1' } });
    const waits: number[] = [];
    for (let restarts = 0; restarts < 8; ) {
      const result = await harness.sync(pod);
      const failure = result.actions[0]?.failure;
      if (failure === undefined) {
        restarts++;
        await harness.clock.advance(50);
        continue;
      }
      assert.equal(failure.reason, 'CrashLoopBackOff');
      assert.match(
        failure.message,
        /^back-off \S+ restarting failed container=a pod=web_default\(uid-web\)$/,
      );
      const waitMs = (result.earliestBackoffExpiryMs ?? 0) - harness.clock.monotonicMs();
      assert.equal(result.error?.details['retryAtMs'], result.earliestBackoffExpiryMs);
      waits.push(Math.round(waitMs / 1_000));
      await harness.clock.advance(waitMs);
    }
    assert.deepEqual(waits, [10, 20, 40, 80, 160, 300]);
    assert.equal((await harness.newest(pod, 'a'))?.restartCount, 7);
    assert.deepEqual(
      harness.eventsOf('BackOff').at(0),
      'Back-off restarting failed container a in pod web_default(uid-web)',
    );
  });

  it('keeps the waiting reason of a container until it starts', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 1' } });
    const reason = () => harness.runtime.reasons.get(pod.metadata.uid, 'a')?.reason;
    for (let syncs = 0; syncs < 3; syncs++) {
      await harness.sync(pod);
      await harness.clock.advance(50);
    }
    assert.equal(reason(), 'CrashLoopBackOff');
    await harness.clock.advance(10_000);
    await harness.sync(pod);
    assert.equal(reason(), undefined);
  });

  it('reports why an image is not available, and starts the other containers', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ bad: { image: 'localhost/nothing:1' }, good: {} });
    const result = await harness.sync(pod);
    assert.match(result.error?.message ?? '', /^failed to "StartContainer" for "bad" with ErrImagePull: "/);
    assert.deepEqual(
      harness.simulated.runningContainers().map(({ name }) => name),
      ['good'],
    );
    assert.deepEqual(harness.eventsOf('Failed').at(-1), 'Error: ErrImagePull');
  });

  it('replaces a failed sandbox and all containers in it', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ main: {} }, { init: { setup: { script: 'exit 0' } } });
    await harness.sync(pod);
    await harness.clock.advance(50);
    await harness.sync(pod);
    const before = await harness.observe(pod);
    harness.simulated.crashSandbox(before.sandboxes[0]?.id ?? '');
    await harness.clock.advance(50);
    assert.equal((await harness.sync(pod)).error, undefined);
    await harness.clock.advance(50);
    assert.equal((await harness.sync(pod)).error, undefined);
    const after = await harness.observe(pod);
    assert.deepEqual(
      after.sandboxes.map(({ attempt, state }) => [attempt, state]),
      [
        [1, 'ready'],
        [0, 'not-ready'],
      ],
    );
    assert.deepEqual(
      after.containers.map(({ name, state, restartCount }) => `${name} ${state} ${restartCount}`),
      ['main running 1', 'setup exited 1', 'main exited 0'],
    );
    assert.deepEqual(harness.eventsOf('SandboxChanged'), [
      'Pod sandbox changed, it will be killed and re-created.',
    ]);
  });

  it('reports why the sandbox of a pod cannot be created', async () => {
    const fault = { kind: 'error', code: 'UNKNOWN', message: 'no network' } as const;
    using harness = new PodRuntimeRig({
      faults: scriptedFaults({ calls: [{ method: 'runPodSandbox', fault }] }),
    });
    const result = await harness.sync(podOf({ a: {} }));
    assert.equal(
      result.error?.message,
      'failed to "CreatePodSandbox" for "web_default(uid-web)" with CreatePodSandboxError: "Failed to create sandbox for pod \\"web_default(uid-web)\\": no network"',
    );
    assert.deepEqual(harness.eventsOf('FailedCreatePodSandBox'), [
      'Failed to create pod sandbox: no network',
    ]);
  });

  for (const code of ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'none'] as const) {
    for (const method of ['runPodSandbox', 'createContainer', 'startContainer'] as const) {
      it(`uses the created object after the response to ${method} was lost (${code})`, async () => {
        const fault = { kind: 'lost-reply', code } as const;
        using harness = new PodRuntimeRig({
          faults: scriptedFaults({ calls: [{ method, fault, times: 1 }] }),
        });
        const pod = podOf({ a: {} });
        assert.equal((await harness.sync(pod)).error, undefined);
        const observed = await harness.observe(pod);
        assert.deepEqual(
          observed.containers.map(({ state, restartCount }) => [state, restartCount]),
          [['running', 0]],
        );
        assert.deepEqual(
          observed.sandboxes.map(({ attempt }) => attempt),
          [0],
        );
      });
    }
  }

  it('creates the sandbox with the next attempt number when a sandbox name stays reserved', async () => {
    const taken = (what: string): string =>
      `failed to reserve ${what} name "x": name "x" is reserved for "y"`;
    const error = (message: string) => ({ kind: 'error', code: 'UNKNOWN', message }) as const;
    using harness = new PodRuntimeRig({
      faults: scriptedFaults({
        calls: [
          { method: 'runPodSandbox', fault: error(taken('sandbox')), times: 1 },
          { method: 'createContainer', fault: error(taken('container')), times: 1 },
        ],
      }),
    });
    const pod = podOf({ a: {} });
    assert.equal((await harness.sync(pod)).error, undefined);
    const observed = await harness.observe(pod);
    assert.deepEqual([observed.sandboxes[0]?.attempt, observed.containers[0]?.restartCount], [1, 1]);
  });

  it('starts the container that a previous kubelet created but did not start', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    const controller = new AbortController();
    const stop = harness.simulated.trace.subscribe((entry) => {
      if (entry.kind === 'container-created') controller.abort(cancelledError('kubeling ends'));
    });
    await assert.rejects(harness.sync(pod, controller.signal), /kubeling ends/);
    stop[Symbol.dispose]();
    assert.equal(harness.simulated.runningContainers().length, 0);
    assert.equal((await harness.sync(pod)).error, undefined);
    const observed = await harness.observe(pod);
    assert.deepEqual(
      observed.containers.map(({ state, restartCount }) => [state, restartCount]),
      [['running', 0]],
    );
  });

  it('keeps a running container when a cancelled CreateContainer call has created a newer one', async () => {
    const late = { kind: 'late-effect', ms: 20_000, code: 'UNAVAILABLE' } as const;
    using harness = new PodRuntimeRig({
      faults: scriptedFaults({ calls: [{ method: 'createContainer', fault: late, times: 1 }] }),
    });
    const pod = podOf({ a: {} });
    assert.notEqual((await harness.sync(pod)).error, undefined);
    await harness.clock.advance(1_000);
    await harness.sync(pod);
    await harness.clock.advance(30_000);
    assert.equal((await harness.sync(pod)).error, undefined);
    await harness.sync(pod);
    assert.equal(harness.simulated.runningContainers().length, 1);
  });

  it("a sync can be cancelled at any time, rejects with the signal's reason, and a later sync completes the work", async () => {
    const pod = podOf({ a: {}, b: {} }, { init: { setup: { script: 'exit 0' } } });
    for (let afterMs = 0; afterMs < 400; afterMs += 7) {
      using harness = new PodRuntimeRig({ seed: afterMs + 1 });
      const controller = new AbortController();
      harness.clock.timer(afterMs, () => controller.abort(cancelledError('enough')));
      const first = harness.sync(pod, controller.signal);
      await first.catch((error: unknown) => assert.match(String(error), /enough/));
      for (let syncs = 0; syncs < 8; syncs++) {
        await harness.clock.advance(20_000);
        await harness.sync(pod);
      }
      const running = harness.simulated.runningContainers().map(({ name }) => name);
      assert.deepEqual([...running].sort(), ['a', 'b'], `aborted after ${afterMs} ms`);
    }
  });

  it("kills a container whose postStart hook fails, and keeps the hook's output out of the event", async () => {
    using harness = new PodRuntimeRig({
      hooks: { run: () => Promise.reject(new Error('secret output')) },
    });
    const pod = podOf({ a: { lifecycle: { postStart: { exec: { command: ['x'] } } } } });
    const result = await harness.sync(pod);
    assert.equal(result.actions.at(-1)?.failure?.reason, 'PostStartHookError');
    assert.deepEqual(harness.eventsOf('FailedPostStartHook'), ['PostStartHook failed']);
    assert.equal(harness.simulated.runningContainers().length, 0);
  });

  it("replaces the container id in events by the container's name", async () => {
    using harness = new PodRuntimeRig({
      faults: {
        call: (method, request) => {
          if (method !== 'startContainer') return undefined;
          const { containerId } = request as { readonly containerId: string };
          return { kind: 'error', code: 'UNKNOWN', message: `cannot start "${containerId}": no such file` };
        },
        event: () => undefined,
      },
    });
    const result = await harness.sync(podOf({ a: {} }));
    assert.equal(result.actions.at(-1)?.failure?.reason, 'RunContainerError');
    assert.deepEqual(harness.eventsOf('Failed'), ['Error: cannot start "a": no such file']);
  });

  it('restores the restart count from the log files when the runtime has no instance of the container', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    for (const name of ['0.log', '3.log', '3.log.20260101-000000.gz']) {
      harness.files.write(`/logs/pods/default_web_uid-web/a/${name}`, '');
    }
    await harness.sync(pod);
    assert.equal((await harness.newest(pod, 'a'))?.restartCount, 4);
  });

  it('the status shows the termination message of a container, or the end of its log', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({
      file: { script: 'echo because >/dev/termination-log; exit 3' },
      log: { script: 'echo one; echo two; exit 3', terminationMessagePolicy: 'FallbackToLogsOnError' },
      none: { script: 'echo one; exit 3' },
    });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const { containers } = await harness.observe(pod);
    const messages = Object.fromEntries(containers.map(({ name, message }) => [name, message]));
    assert.deepEqual(messages, { file: 'because\n', log: 'one\ntwo\n', none: '' });
  });

  it('creates containers from present images by image id', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    assert.equal((await harness.newest(pod, 'a'))?.image, busybox);
  });
});

describe('CRI calls of a pod sync', () => {
  it('restarting a crashed container needs one ImageStatus call and the creation of a container in the same sandbox', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 1' } });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const observed = await harness.observe(pod);
    harness.takeCalls();
    await harness.done(harness.runtime.syncPod({ pod, observed, context: noProbes }, harness.signal));
    assert.deepEqual(harness.takeCalls(), ['imageStatus', 'createContainer', 'startContainer']);
  });

  it('the statuses of all sandboxes and containers are read concurrently', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {}, b: {} });
    await harness.sync(pod);
    harness.takeCalls();
    await harness.observe(pod);
    assert.deepEqual(harness.takeCalls(), [
      'listPodSandbox',
      'listContainers',
      'containerStatus',
      'containerStatus',
    ]);
  });

  it('containers of a deleted pod are removed with their logs before its sandbox', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    await harness.kill(pod);
    harness.gone.add(pod.metadata.uid);
    harness.takeCalls();
    await harness.done(harness.runtime.garbageCollect('deleted-pods', harness.signal));
    assert.deepEqual(
      harness.takeCalls().filter((call) => !call.startsWith('list')),
      ['containerStatus', 'removeContainer', 'stopPodSandbox', 'removePodSandbox'],
    );
  });
});

describe('syncing pods with ephemeral, init and sidecar containers', () => {
  it('ephemeral containers are started once, beside running containers', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const debug = {
      name: 'debug',
      image: busybox,
      command: ['sh', '-c', 'exit 0'],
      targetContainerName: 'a',
    };
    const debugged = { ...pod, spec: { ...pod.spec, ephemeralContainers: [debug] } };
    await harness.sync(debugged);
    await harness.clock.advance(100);
    await harness.sync(debugged);
    const names = (await harness.observe(pod)).containers.map(({ name, state }) => `${name} ${state}`);
    assert.deepEqual(names, ['debug exited', 'a running']);
  });

  it('an ephemeral container is not started without its target container', async () => {
    using harness = new PodRuntimeRig();
    const debug = { name: 'debug', image: busybox, targetContainerName: 'nobody' };
    const pod = podOf({ a: {} });
    await harness.sync(pod);
    const result = await harness.sync({ ...pod, spec: { ...pod.spec, ephemeralContainers: [debug] } });
    assert.deepEqual(result.actions[0]?.failure, {
      reason: 'CreateContainerConfigError',
      message: 'unable to find target container nobody',
    });
  });

  it('RestartAllContainers replaces all containers and keeps their logs', async () => {
    using harness = new PodRuntimeRig();
    const pod = podOf({ a: { script: 'exit 7' }, b: { script: 'trap "" TERM; sleep 100000' } });
    await harness.sync(pod);
    await harness.clock.advance(100);
    const observed = await harness.observe(pod);
    const context = { ...noProbes, restart: 'all-containers' } as const;
    const result = await harness.done(harness.runtime.syncPod({ pod, observed, context }, harness.signal));
    assert.equal(result.error, undefined);
    const after = await harness.observe(pod);
    assert.deepEqual([after.containers.length, after.sandboxes[0]?.state], [0, 'ready']);
    assert.deepEqual(await harness.machine.names('/logs/pods/default_web_uid-web/a'), ['0.log']);
  });

  it('a failing sidecar does not block other containers, a failing regular init container does', async () => {
    for (const [init, expected] of [
      [{ restartPolicy: 'Always', script: 'sleep 1; exit 1' }, ['main running 1', 'steady running 0']],
      [{ script: 'exit 1' }, []],
    ] as const) {
      using harness = new PodRuntimeRig();
      const pod = podOf({ main: { script: 'sleep 2; exit 1' }, steady: {} }, { init: { helper: init } });
      await harness.sync(pod);
      await harness.sync(pod);
      await harness.clock.advance(5_000);
      const fault = { kind: 'error', code: 'UNKNOWN', message: 'no space left' } as const;
      const isHelper = (request: unknown) => JSON.stringify(request, ignoreBig).includes('"name":"helper"');
      harness.simulated.setFaults(
        scriptedFaults({ calls: [{ method: 'createContainer', fault, matches: isHelper }] }),
      );
      await harness.clock.advance(60_000);
      const result = await harness.sync(pod);
      assert.match(result.error?.message ?? '', /"helper" with CreateContainerError: "no space left"/);
      const { containers } = await harness.observe(pod);
      const running = containers.filter(({ state }) => state === 'running');
      assert.deepEqual(
        running.map(({ name, state, restartCount }) => `${name} ${state} ${restartCount}`).toSorted(),
        expected,
      );
    }
  });

  it('sidecars start in order before the regular containers and keep running', async () => {
    using harness = new PodRuntimeRig();
    const sidecar = { restartPolicy: 'Always' };
    const pod = podOf({ main: {} }, { init: { first: sidecar, second: sidecar } });
    for (let syncs = 0; syncs < 4; syncs++) await harness.sync(pod);
    const started = harness.simulated.trace.entries().filter((entry) => entry.kind === 'container-started');
    assert.deepEqual(
      started.map(({ name }) => name),
      ['first', 'second', 'main'],
    );
    assert.equal(harness.simulated.runningContainers().length, 3);
  });
});
