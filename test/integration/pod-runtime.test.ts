import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type CriClient, createCriClient, wireTransport } from '../../src/cri/index.ts';
import { collectLogs, realClock, systemRandom } from '../../src/lib/index.ts';
import type { ObservedPod, Pod, PodEvent, PodUid } from '../../src/pods/index.ts';
import {
  CrashBackoff,
  RuntimeManager,
  realRuntimeFiles,
  type SyncPodResult,
} from '../../src/runtime/index.ts';
import { poll } from '../contract/containerd-backend.ts';
import { noProbes, podOf } from '../fakes/pod-runtime-rig.ts';
import { noCredentials, noHooks } from '../fakes/runtime-stubs.ts';
import { simplePlanner } from '../fakes/simple-planner.ts';
import { openPrivateRuntime, type PrivateRuntime, within } from '../private-runtime.ts';

const clock = realClock();
const random = systemRandom();
const limitMs = 180_000;

describe('pods of a real containerd', () => {
  let containerd: PrivateRuntime;
  let runtime: RuntimeManager;
  let image: string;
  const files = realRuntimeFiles();
  const events: PodEvent[] = [];
  const gone = new Set<PodUid>();

  before(async () => {
    containerd = await openPrivateRuntime();
    image = containerd.image;
    runtime = runtimeOn(containerd.cri);
  });

  const runtimeOn = (cri: CriClient): RuntimeManager => {
    const at = (name: string) => join(containerd.dataDir, name);
    return new RuntimeManager({
      cri,
      clock,
      random,
      journal: { event: (_pod, event) => void events.push(event), step: () => {} },
      logger: collectLogs(clock).logger,
      files,
      planner: simplePlanner({
        podLogsDir: at('logs/pods'),
        podsDir: at('pods'),
        cgroupParent: containerd.containerd.layout.cgroup,
      }),
      crashBackoff: new CrashBackoff({ random }),
      hooks: noHooks,
      credentials: noCredentials,
      pods: {
        shouldPodContentBeRemoved: (uid) => gone.has(uid),
        shouldPodRuntimeBeRemoved: (uid) => gone.has(uid),
        secondsLeft: () => undefined,
      },
      settings: {
        runtimeName: 'containerd',
        podLogsDir: at('logs/pods'),
        logLinksDir: at('logs/containers'),
        pulls: { maxParallel: 1, qps: 5, burst: 10 },
        gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
      },
    });
  };

  after(async () => {
    await runtime?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });

  const observe = (pod: Pod): Promise<ObservedPod> =>
    within(limitMs, 'observe a pod', async (signal) => {
      const { uid, name, namespace } = pod.metadata;
      const listed = await runtime.listPod(uid, signal);
      if (listed !== undefined) return await runtime.observe(listed, signal);
      return { uid, name, namespace, ips: [], sandboxes: [], containers: [] };
    });

  const sync = async (pod: Pod, by: RuntimeManager = runtime): Promise<SyncPodResult> => {
    const observed = await observe(pod);
    return await within(limitMs, 'sync a pod', (signal) =>
      by.syncPod({ pod, observed, context: noProbes }, signal),
    );
  };

  /** Polls until the newest instance of a container has the given state. */
  const until = (pod: Pod, name: string, state: string) =>
    poll(`${name} to be ${state}`, async () => {
      const newest = (await observe(pod)).containers.find((container) => container.name === name);
      return newest?.state === state ? newest : undefined;
    });

  const withImage = (pod: Pod): Pod => {
    const named = <T extends object>(containers: readonly T[]) =>
      containers.map((each) => ({ ...each, image }));
    const { containers, initContainers = [] } = pod.spec;
    return {
      ...pod,
      spec: { ...pod.spec, containers: named(containers), initContainers: named(initContainers) },
    };
  };

  /** Calls to a runtime under load may fail sometimes; the pod worker retries them. */
  const clear = async (pod: Pod, graceSeconds = 2): Promise<void> => {
    await poll('the pod to be stopped', async () => {
      const running = await observe(pod);
      const { error } = await within(limitMs, 'kill a pod', (signal) =>
        runtime.killPod({ pod, running, graceSeconds }, signal),
      );
      return error === undefined ? true : undefined;
    });
    gone.add(pod.metadata.uid);
    await within(limitMs, 'collect garbage', (signal) => runtime.garbageCollect('deleted-pods', signal));
    const left = await observe(pod);
    assert.deepEqual([left.sandboxes, left.containers], [[], []]);
  };

  it('pods start after their init container, restart after a crash, exit, and leave nothing on the machine', async () => {
    const pod = withImage(
      podOf(
        {
          steady: { script: 'trap "exit 0" TERM; echo up; while true; do sleep 0.1; done' },
          shaky: { script: 'echo going; echo why >/dev/termination-log; sleep 0.2; exit 3' },
        },
        { init: { setup: { script: 'echo ready' } } },
        'real',
      ),
    );
    assert.equal((await sync(pod)).error, undefined);
    await until(pod, 'setup', 'exited');
    assert.equal((await sync(pod)).error, undefined);
    const steady = await until(pod, 'steady', 'running');
    const shaky = await until(pod, 'shaky', 'exited');
    assert.deepEqual([shaky.exitCode, shaky.reason, shaky.message], [3, 'Error', 'why\n']);
    assert.equal(steady.restartCount, 0);

    assert.equal((await sync(pod)).error, undefined);
    const again = await until(pod, 'shaky', 'exited');
    assert.equal(again.restartCount, 1);
    const waiting = await sync(pod);
    assert.match(
      waiting.error?.message ?? '',
      /with CrashLoopBackOff: "back-off 10s restarting failed container=shaky/,
    );

    const observed = await observe(pod);
    assert.equal(observed.ips.length, 1);
    assert.equal(observed.sandboxes[0]?.state, 'ready');
    const link = join(containerd.dataDir, `logs/containers/real_default_steady-${steady.id}.log`);
    assert.match(
      (await files.readEnd((await files.readLink(link)) ?? '', 100))?.toString() ?? '',
      / stdout F up\n$/,
    );
    await clear(pod, 10);
    assert.deepEqual(await files.names(join(containerd.dataDir, 'logs/pods')), []);
    assert.deepEqual(await files.names(join(containerd.dataDir, 'logs/containers')), []);
  });

  it('containers that ignore SIGTERM are killed after their grace period, earlier when it is shortened', async () => {
    const pod = withImage(podOf({ deaf: { script: 'trap "" TERM; sleep 1000' } }, {}, 'deaf'));
    assert.equal((await sync(pod)).error, undefined);
    await until(pod, 'deaf', 'running');
    const running = await observe(pod);
    const controller = new AbortController();
    const first = runtime.killPod({ pod, running, graceSeconds: 600 }, controller.signal);
    const stopped = assert.rejects(first, /shorter grace period/);
    await poll('the stop call', async () =>
      events.some(({ reason }) => reason === 'Killing') ? true : undefined,
    );
    controller.abort(new Error('shorter grace period'));
    await stopped;
    const startMs = clock.monotonicMs();
    await clear(pod, 3);
    const tookMs = clock.monotonicMs() - startMs;
    assert.ok(tookMs > 1_500 && tookMs < 300_000, `it took ${tookMs} ms`);
  });

  it('a pod continues in a new sandbox when its sandbox has exited', async () => {
    const pod = withImage(podOf({ main: {} }, {}, 'homeless'));
    assert.equal((await sync(pod)).error, undefined);
    const [sandbox] = (await observe(pod)).sandboxes;
    const podSandboxId = sandbox?.id ?? '';
    await within(limitMs, 'stop the sandbox', (signal) =>
      containerd.cri.stopPodSandbox({ podSandboxId }, signal),
    );
    assert.equal((await sync(pod)).error, undefined);
    const main = await until(pod, 'main', 'running');
    const after = await observe(pod);
    assert.deepEqual([after.sandboxes[0]?.attempt, main.restartCount], [1, 1]);
    await clear(pod, 1);
  });

  it('a pod deleted during RunPodSandbox leaves no sandbox', async () => {
    const created: number[] = [];
    for (const afterMs of [1, 20, 60, 120, 250]) {
      const pod = withImage(podOf({ main: {} }, {}, `hasty-${afterMs}`));
      const observed = await observe(pod);
      const controller = new AbortController();
      using _timer = clock.timer(afterMs, () => controller.abort(new Error('pod deleted')));
      await runtime.syncPod({ pod, observed, context: noProbes }, controller.signal).catch((error) => {
        if (!controller.signal.aborted) throw error;
      });
      created.push((await observe(pod)).sandboxes.length);
      await clear(pod, 1);
      const logs = await files.names(join(containerd.dataDir, 'logs/pods'));
      assert.deepEqual(
        logs.filter((name) => name.includes('hasty')),
        [],
      );
    }
    assert.ok(created.includes(1), 'every attempt failed before RunPodSandbox');
    const { items } = await within(limitMs, 'list sandboxes', (signal) =>
      containerd.cri.listPodSandbox({}, signal),
    );
    assert.deepEqual(
      items.filter(({ metadata }) => metadata?.name.startsWith('hasty')),
      [],
    );
  });

  it('pods start despite calls that time out at any moment, without a duplicate container', async () => {
    const pod = withImage(podOf({ main: {} }, {}, 'impatient'));
    const failures: string[] = [];
    for (const requestTimeoutMs of [15, 25, 40, 60, 90, 130, 200, 300, 450, 700, 5_000]) {
      const endpoint = `unix://${containerd.containerd.layout.socket}`;
      const cri = createCriClient({
        transport: wireTransport({ endpoint, clock, random }),
        clock,
        requestTimeoutMs,
      });
      await using impatient = runtimeOn(cri);
      const { error } = await sync(pod, impatient);
      cri.close();
      if (error === undefined) break;
      failures.push(error.message);
    }
    assert.match(failures.join(), /within \d+ ms|deadline/i);
    // An aborted container start blocks containerd for a minute, during which it accepts no other
    // start.
    const runs = poll('it to run', async () =>
      (await sync(pod)).error === undefined && (await observe(pod)).containers[0]?.state === 'running'
        ? true
        : undefined,
    );
    await runs.catch((error) => {
      throw new Error(`Failures: ${failures.join('; ')}`, { cause: error });
    });
    const { sandboxes, containers } = await observe(pod);
    const ready = sandboxes.filter(({ state }) => state === 'ready');
    assert.deepEqual([ready.length, ready[0]], [1, sandboxes[0]], 'the newest sandbox is in use');
    assert.equal(containers.filter(({ state }) => state === 'running').length, 1);
    await clear(pod, 1);
  });

  it('pods without a spec are found by the labels of their containers and stopped', async () => {
    const pod = withImage(podOf({ main: {} }, {}, 'orphan'));
    assert.equal((await sync(pod)).error, undefined);
    await within(limitMs, 'kill an orphan', async (signal) => {
      const listed = await runtime.listPod(pod.metadata.uid, signal);
      assert.ok(listed !== undefined);
      const result = await runtime.killRuntimePod(listed, () => 1, signal);
      assert.equal(result.error, undefined);
    });
    await clear(pod, 1);
  });

  it('a pod reports why its container cannot be created from its spec', async () => {
    const pod = withImage(podOf({ bad: { command: ['/nothing/here'] } }, {}, 'broken'));
    const result = await sync(pod);
    const failure = result.actions.at(-1)?.failure;
    assert.equal(failure?.reason, 'RunContainerError');
    assert.match(failure?.message ?? '', /no such file or directory/);
    assert.equal(runtime.reasons.get(pod.metadata.uid, 'bad')?.reason, 'RunContainerError');
    await clear(pod, 1);
  });
});
