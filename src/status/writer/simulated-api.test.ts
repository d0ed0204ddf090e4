import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { anInstance, observe } from '../../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../../test/fakes/status-context.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { randomApiFaults, SimulatedApi } from '../../../test/simulator/api/index.ts';
import { apiResources, PatchSchema } from '../../api/index.ts';
import type { PodStatus } from '../../kinds/index.ts';
import { collectLogs, pick, type Random, randomInt, seededRandom } from '../../lib/index.ts';
import { isTerminalPhase, type Pod, type PodUid, podUid } from '../../pods/index.ts';
import { generatePodStatus } from '../generate.ts';
import { StatusManager } from '../status-manager.ts';
import { sameInApi } from './merge-status.ts';
import { StatusWriter } from './status-writer.ts';
import { plainStatus } from './sync-status.ts';

const node = 'n1';
const rates = {
  delay: 0.1,
  refuse: 0.1,
  conflict: 0.05,
  unreachable: 0.05,
  hang: 0.02,
  lostAnswer: 0.1,
  lateEffect: 0.05,
};

function onNode(index: number): Pod {
  const name = `web-${index}`;
  return {
    ...aPod({
      metadata: { name, uid: podUid(`uid-${index}`) },
      spec: { nodeName: node, restartPolicy: 'Always' },
      status: { phase: 'Pending' },
    }),
    apiVersion: 'v1',
    kind: 'Pod',
  };
}

/**
 * Simulates a node with a delayed watch, random pod changes and an API server that fails at random.
 */
class World {
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly api: SimulatedApi;
  readonly watched = new Map<PodUid, Pod>();
  readonly live = new Set<PodUid>();
  readonly finished = new Set<PodUid>();
  readonly statuses: StatusManager;
  readonly breaches: string[] = [];
  readonly #stopping = new AbortController();
  readonly #versions = new Map<PodUid, number>();
  #restarts = 0;

  /**
   * Continues from an earlier simulation as after a kubelet restart: only the API server and the
   * watched pods are kept.
   */
  constructor(seed: number, earlier?: World) {
    this.random = seededRandom(seed);
    this.clock = earlier?.clock ?? new VirtualClock({ random: this.random });
    for (const [uid, pod] of earlier?.watched ?? []) this.watched.set(uid, pod);
    const { clock, random } = this;
    const { logger } = collectLogs(clock);
    this.api = earlier?.api ?? new SimulatedApi({ clock, random });
    this.api.onChange(({ type, object, before, version }) => {
      const pod = object as unknown as Pod;
      if (object.kind !== 'Pod') return;
      this.#check(pod, before as unknown as Pod | undefined, type);
      clock.timer(random.next() * 50, () => this.#see(pod, type, version));
    });
    this.statuses = new StatusManager({ clock, logger, findPod: (uid) => this.watched.get(uid) });
    this.writer = new StatusWriter({
      clock,
      random,
      logger,
      api: this.api.client(nodeUser(node), { deadlineMs: 5_000 }),
      statuses: this.statuses,
      podOf: (uid) => this.watched.get(uid),
      mayRun: (uid) => this.live.has(uid),
      schema: new PatchSchema(),
    });
  }

  writer: StatusWriter;

  start(): void {
    this.writer.run(this.#stopping.signal).catch(() => {});
  }

  stop(): void {
    this.#stopping.abort(new Error('stopped'));
    this.api[Symbol.dispose]();
  }

  say(pod: Pod, phase: string): void {
    const isOver = isTerminalPhase(phase);
    const restartCount = isOver ? this.#restarts : ++this.#restarts;
    const state = isOver
      ? { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:00:01Z' } }
      : { running: {} };
    const container = { name: 'main', ready: !isOver, restartCount, image: 'i', imageID: 'x', state };
    const status: PodStatus = {
      phase,
      qosClass: 'BestEffort',
      conditions: [{ type: 'Ready', status: isOver ? 'False' : 'True' }],
      containerStatuses: [container],
    };
    this.statuses.setPodStatus(this.watched.get(pod.metadata.uid) ?? pod, status);
  }

  /** Terminates the pod; its containers exit later, and the clean-up finishes after that. */
  end(pod: Pod): void {
    this.api.deletePod('default', pod.metadata.name, 30);
    this.say(pod, 'Failed');
    this.clock.timer(this.random.next() * 5_000, () => {
      this.live.delete(pod.metadata.uid);
      this.clock.timer(this.random.next() * 5_000, () => {
        this.finished.add(pod.metadata.uid);
        this.statuses.terminatePod(this.watched.get(pod.metadata.uid) ?? pod);
      });
    });
  }

  /** The simulated watch delivers events in order; older ones are dropped. */
  #see(pod: Pod, type: string, version: number): void {
    if (version < (this.#versions.get(pod.metadata.uid) ?? 0)) return;
    this.#versions.set(pod.metadata.uid, version);
    if (type === 'DELETED') this.watched.delete(pod.metadata.uid);
    else this.watched.set(pod.metadata.uid, pod);
  }

  #check(pod: Pod, before: Pod | undefined, type: string): void {
    const { uid, name } = pod.metadata;
    if (type === 'DELETED' && !this.finished.has(uid))
      this.breaches.push(`${name} was deleted before it had terminated`);
    if (isTerminalPhase(pod.status?.phase) && this.live.has(uid))
      this.breaches.push(`${name} was reported as terminated while it may run`);
    if (isTerminalPhase(before?.status.phase) && !isTerminalPhase(pod.status?.phase))
      this.breaches.push(`${name} left a terminal phase`);
    const [was, is] = [before, pod].map((each) => each?.status?.containerStatuses?.[0]?.restartCount ?? 0);
    if ((was ?? 0) > (is ?? 0)) this.breaches.push(`${name} decreased its restarts from ${was} to ${is}`);
  }
}

describe('StatusWriter after a restart', () => {
  it('sends no patch for fifty unchanged statuses', async (t) => {
    const first = new World(1);
    t.after(() => first.stop());
    const { clock, api } = first;
    const pods = Array.from({ length: 50 }, (_, index) => onNode(index));
    for (const pod of pods) api.put(apiResources.pods, pod);
    await clock.advance(100);
    const publish = ({ statuses, watched }: World) => {
      for (const { metadata } of pods) {
        const pod = watched.get(metadata.uid) ?? assert.fail();
        const context = aStatusContext({ previous: statuses.previousStatus(pod) });
        statuses.setPodStatus(pod, generatePodStatus(pod, observe(pod, [anInstance()]), context));
      }
    };
    first.start();
    publish(first);
    await clock.advance(20_000);
    assert.equal(api.calls.of({ verb: 'patch' }), 50);
    const second = new World(2, first);
    t.after(() => second.stop());
    second.start();
    publish(second);
    await clock.advance(60_000);
    assert.deepEqual(api.calls.table(), { 'patch pods/status': 50 });
  });
});

describe('StatusWriter with an API server that fails at random', () => {
  for (let seed = 1; seed <= 12; seed++) {
    it(`the statuses in the API converge to those of the kubelet and are never reverted, seed ${seed}`, async (t) => {
      const environment = new World(seed);
      t.after(() => environment.stop());
      const { clock, random, api, statuses, writer } = environment;
      const pods = Array.from({ length: 6 }, (_, index) => onNode(index));
      for (const pod of pods) {
        api.put(apiResources.pods, pod);
        environment.live.add(pod.metadata.uid);
      }
      await clock.advance(100);
      api.setFaults(randomApiFaults({ random, rates }));
      environment.start();
      const ending = new Set(pods.filter(() => random.next() < 0.5));
      for (let step = 0; step < 60; step++) {
        const pod = pick(random, pods);
        if (pod !== undefined && environment.live.has(pod.metadata.uid)) environment.say(pod, 'Running');
        await clock.advance(randomInt(random, 1_500));
      }
      for (const pod of ending) environment.end(pod);
      await clock.advance(60_000);
      api.setFaults(undefined);
      writer.reconnected();
      await clock.advance(30_000);
      assert.deepEqual(environment.breaches, []);
      const left = api.objects(apiResources.pods).map(({ metadata }) => metadata.name);
      assert.deepEqual(
        left,
        pods.filter((pod) => !ending.has(pod)).map(({ metadata }) => metadata.name),
      );
      for (const { metadata, status } of api.objects(apiResources.pods)) {
        const ours = statuses.entry(podUid(String(metadata.uid)))?.status ?? {};
        assert.ok(
          sameInApi(plainStatus(status as PodStatus), plainStatus(ours)),
          JSON.stringify([status, ours]),
        );
      }
      const calls = api.calls.of();
      await clock.advance(60_000);
      assert.equal(api.calls.of(), calls, 'no calls when idle');
      assert.equal(writer.pending, 0);
    });
  }
});
