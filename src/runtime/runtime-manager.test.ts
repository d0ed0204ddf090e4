import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ContainerSketch, noProbes, PodRuntimeRig, podOf } from '../../test/fakes/pod-runtime-rig.ts';
import { randomFaults } from '../../test/simulator/index.ts';
import { cancelledError, pick, type Random, randomInt, seededRandom } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';

const seeds = 150;
const scripts = [
  'sleep 100000',
  'exit 0',
  'exit 1',
  'sleep 3; exit 1',
  'trap "" TERM; sleep 100000',
  'trap "sleep 1; exit 0" TERM; while true; do sleep 1; done',
];

function randomPod(random: Random, name: string): Pod {
  const some = (prefix: string, atLeast: number): Record<string, ContainerSketch> =>
    Object.fromEntries(
      Array.from({ length: atLeast + randomInt(random, 2) }, (_, at) => [
        `${prefix}${at}`,
        { script: pick(random, scripts) ?? '' },
      ]),
    );
  const init = Object.fromEntries(
    Object.keys(some('init', 0)).map((each) => [
      each,
      random.next() < 0.4 ? { restartPolicy: 'Always' } : { script: 'exit 0' },
    ]),
  );
  const restartPolicy = pick(random, ['Always', 'OnFailure', 'Never']);
  return podOf(some('c', 1), { init, restartPolicy }, name);
}

/** Records each time two instances of one container run concurrently. */
function watchForTwins(harness: PodRuntimeRig): readonly string[] {
  const twins: string[] = [];
  harness.simulated.trace.subscribe((entry) => {
    if (entry.kind !== 'container-started') return;
    const running = harness.simulated.runningContainers();
    const names = running.map(({ podUid, name }) => `${podUid} ${name}`);
    if (new Set(names).size < names.length) twins.push(names.sort().join(', '));
  });
  return twins;
}

/** Simulates a pod worker that syncs the pod repeatedly and sometimes cancels a sync. */
async function live(harness: PodRuntimeRig, pod: Pod, random: Random): Promise<void> {
  for (let syncs = 0; syncs < 12; syncs++) {
    const controller = new AbortController();
    using _timer = harness.clock.timer(random.next() < 0.3 ? random.next() * 2_000 : 1e9, () =>
      controller.abort(cancelledError('another sync is due')),
    );
    const { signal } = controller;
    try {
      const listed = await harness.runtime.listPod(pod.metadata.uid, signal);
      const observed =
        listed === undefined
          ? { ...pod.metadata, ips: [], sandboxes: [], containers: [] }
          : await harness.runtime.observe(listed, signal);
      await harness.runtime.syncPod({ pod, observed, context: noProbes }, signal);
    } catch {
      // Failed observations and cancelled calls are ignored: the simulated worker retries both.
    }
    await harness.clock.sleep(random.next() * 15_000, harness.signal);
  }
}

async function end(harness: PodRuntimeRig, pod: Pod): Promise<void> {
  for (;;) {
    try {
      const listed = await harness.runtime.listPod(pod.metadata.uid, harness.signal);
      if (listed === undefined) return;
      const running = await harness.runtime.observe(listed, harness.signal);
      const { error } = await harness.runtime.killPod({ pod, running, graceSeconds: 2 }, harness.signal);
      if (error === undefined) await harness.runtime.garbageCollect('deleted-pods', harness.signal);
    } catch {
      // A cancelled call rejects; the simulated worker retries.
    }
    await harness.clock.sleep(2_000, harness.signal);
  }
}

describe('pods on a runtime with random failures', () => {
  it(`each pod terminates, leaves no objects in the runtime and never runs a container twice concurrently (${seeds} seeds)`, async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const random = seededRandom(seed);
      using harness = new PodRuntimeRig({ seed, requestTimeoutMs: 5_000 });
      const twins = watchForTwins(harness);
      const rates = { delay: 0.1, error: 0.05, hang: 0.01, lostReply: 0.05, lateEffect: 0.03 };
      harness.simulated.setFaults(randomFaults({ random, rates, maxDelayMs: 8_000 }));
      const pods = ['one', 'two'].map((name) => randomPod(random, name));
      await harness.done(Promise.all(pods.map((pod) => live(harness, pod, random))));
      for (const pod of pods) harness.gone.add(pod.metadata.uid);
      await harness.done(Promise.all(pods.map((pod) => end(harness, pod))));
      harness.simulated.setFaults(undefined);
      await harness.clock.advance(60_000);
      await harness.done(Promise.all(pods.map((pod) => end(harness, pod))));
      assert.deepEqual(twins, [], `seed ${seed}`);
      for (const pod of pods) harness.runtime.forgetPod(pod.metadata.uid);
      const { sandboxes, containers, names, addresses, calls } = harness.simulated.held();
      assert.deepEqual(
        Object.entries({
          sandboxes,
          containers,
          names,
          addresses,
          calls,
          ...harness.runtime.pending(),
        }).filter(([, count]) => count !== 0),
        [],
        `seed ${seed}`,
      );
      assert.equal(harness.clock.pendingTimers, 0, `seed ${seed} left a timer`);
    }
  });
});
