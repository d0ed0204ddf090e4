import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLister } from '../../test/fakes/memory-lister.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { abortable, collectLogs, isKind, KubelingError, MetricRegistry, seededRandom } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { plegMetrics } from './metrics.ts';
import { Pleg, type PlegOptions } from './pleg.ts';

const never = new AbortController().signal;
const uid = podUid('a');

interface Options {
  readonly events?: 'none' | 'yes' | 'provoked';
  readonly times?: PlegOptions['times'];
  readonly isBeingEnded?: PlegOptions['isTerminating'];
}

/** A PLEG with an in-memory runtime, under virtual time. */
class Watched implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly runtime = new MemoryLister();
  readonly logs = collectLogs(this.clock);
  readonly registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  readonly pleg: Pleg;
  readonly #controller = new AbortController();
  readonly #running: Promise<void>;

  constructor({ events = 'none', times, isBeingEnded }: Options = {}) {
    this.pleg = new Pleg({
      clock: this.clock,
      random: seededRandom(1),
      log: this.logs.logger,
      runtime: this.runtime,
      metrics: plegMetrics(this.registry),
      events:
        events === 'none'
          ? undefined
          : this.runtime.source({ provokes: events === 'provoked' ? 'yes' : 'no' }),
      times,
      isTerminating: isBeingEnded,
    });
    this.#running = this.pleg.run(this.#controller.signal);
  }

  /** Returns all queued events. */
  async events(): Promise<string[]> {
    const events: string[] = [];
    const controller = new AbortController();
    for (;;) {
      await settle();
      const next = this.pleg.nextEvent(controller.signal).catch(() => undefined);
      const none = settle().then(() => controller.abort());
      const event = await next;
      await none;
      if (event === undefined) return events;
      const about = event.type === 'PodSync' ? event.uid : event.containerId;
      events.push(`${event.type} ${about}`);
      if (controller.signal.aborted) {
        events.push(...(await this.events()));
        return events;
      }
    }
  }

  take(): string[] {
    return this.runtime.calls.splice(0);
  }

  async metric(name: string): Promise<number> {
    const text = await this.registry.expose(never);
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error('The test has ended'));
    await this.#running;
    assert.equal(this.clock.pendingTimers, 0);
    assert.equal(this.runtime.subscribers, 0);
  }
}

test('relists all pods immediately, then a second after each relist', async () => {
  await using node = new Watched();
  node.runtime.beforeList = (signal) => node.clock.sleep(500, signal);
  await node.clock.advance(4_400);
  assert.deepEqual(node.take(), ['list', 'list', 'list']);
});

test('reports each lifecycle event of containers and sandboxes once', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'sandbox-a', 'running');
  node.runtime.set('a', 'web', 'created');
  await settle();
  assert.deepEqual(await node.events(), ['ContainerStarted sandbox-a']);
  assert.equal(node.pleg.cache.get(uid).containers[0]?.state, 'created');
  const steps: [state: Parameters<MemoryLister['set']>[2], events: string[]][] = [
    ['running', ['ContainerStarted web']],
    ['exited', ['ContainerDied web']],
    ['running', ['ContainerStarted web']],
    ['unknown', []],
    [undefined, ['ContainerDied web', 'ContainerRemoved web']],
    ['exited', ['ContainerDied web']],
    [undefined, ['ContainerRemoved web']],
  ];
  for (const [state, events] of steps) {
    node.runtime.set('a', 'web', state);
    await node.clock.advance(1_000);
    assert.deepEqual(await node.events(), events, `to ${state}`);
  }
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), []);
  node.runtime.set('a', 'sandbox-a', undefined);
  await node.clock.advance(1_000);
  assert.deepEqual(node.pleg.cache.size, 0);
  assert.deepEqual(node.pleg.remembered, { pods: 0, looks: 0, hints: 0, waiting: 0 });
});

test('updates the cache but reports no event for a created container', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.set('a', 'web', 'created');
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), []);
  assert.equal(node.pleg.cache.get(uid).containers[0]?.state, 'created');
});

test('reports PodSync for a requested inspection that finds no changes', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'web', 'running');
  await settle();
  await node.events();
  node.pleg.requestReinspect(uid);
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), ['PodSync a']);
});

test("releases a worker only by a relist that started after the worker's sync ended", async () => {
  await using node = new Watched();
  await settle();
  node.runtime.beforeList = (signal) => node.clock.sleep(300, signal);
  await node.clock.advance(1_000);
  const syncEnd = node.clock.stamp();
  let released = false;
  const waiting = node.pleg.cache.getNewerThan(uid, syncEnd, never).then(() => {
    released = true;
  });
  await node.clock.advance(299);
  await node.clock.advance(1);
  assert.equal(released, false, 'the listing in progress started too early');
  await node.clock.advance(2_000);
  await waiting;
});

test('a failed relist reports no events, leaves the cache and its timestamp unchanged, and is logged once', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'web', 'running');
  await settle();
  await node.events();
  const { globalStamp } = node.pleg.cache;
  node.runtime.beforeList = async () => {
    throw new Error('the runtime is unavailable');
  };
  node.runtime.set('a', 'web', undefined);
  await node.clock.advance(5_000);
  assert.deepEqual(await node.events(), []);
  assert.equal(node.pleg.cache.globalStamp, globalStamp);
  assert.equal(node.pleg.cache.get(uid).containers.length, 1);
  const errors = node.logs.records.toArray().filter(({ severity }) => severity === 'error');
  assert.equal(errors.length, 1);
});

test('is unhealthy before the first relist, and three minutes after the last successful one', async () => {
  await using node = new Watched();
  assert.equal(node.pleg.problem(), 'pleg has yet to be successful');
  await settle();
  assert.equal(node.pleg.problem(), undefined);
  node.runtime.beforeList = async () => {
    throw new Error('away');
  };
  await node.clock.advance(180_000);
  assert.equal(node.pleg.problem(), undefined);
  await node.clock.advance(1_000);
  assert.equal(node.pleg.problem(), 'pleg was last seen active 3m1s ago; threshold is 3m0s');
});

test('is unhealthy until the pods of the first relist are in the cache', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'web', 'running');
  node.runtime.beforeObserve = (_uid, signal) => node.clock.sleep(100, signal);
  await settle();
  assert.equal(node.pleg.problem(), 'pleg has yet to be successful');
  await node.clock.advance(100);
  assert.equal(node.pleg.problem(), undefined);
});

test('updates other pods when the inspection of one fails, returns the error to waiters, and retries', async () => {
  await using node = new Watched();
  node.runtime.beforeObserve = async (id) => {
    if (id === 'a') throw new Error('cannot inspect');
  };
  node.runtime.set('a', 'web', 'running');
  node.runtime.set('b', 'db', 'running');
  await node.clock.advance(3_000);
  assert.deepEqual(await node.events(), ['ContainerStarted db']);
  await assert.rejects(node.pleg.cache.getNewerThan(uid, 0, never), /cannot inspect/);
  assert.equal(node.pleg.cache.get(podUid('b')).containers.length, 1);
  assert.equal(node.pleg.problem(), undefined);
  node.runtime.beforeObserve = async () => {};
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), ['ContainerStarted web']);
  assert.equal(node.pleg.cache.get(uid).containers.length, 1);
});

test('relists a pod with a failed inspection every second, even after a failed relist of all pods', async () => {
  await using node = new Watched({ times: { relistMs: 30_000 } });
  node.runtime.set('a', 'web', 'running');
  node.runtime.beforeObserve = async () => {
    throw new Error('cannot inspect');
  };
  await settle();
  let looks = 0;
  node.runtime.beforeList = async () => {
    if (++looks === 1) throw new Error('cannot list');
  };
  node.runtime.beforeObserve = async () => {};
  await node.clock.advance(2_000);
  assert.equal(looks, 2);
  assert.equal(node.pleg.cache.get(uid).containers.length, 1);
});

test('updates other pods while an inspection hangs, and fails the inspection after its deadline', async () => {
  await using node = new Watched();
  node.runtime.beforeObserve = (id, signal) =>
    id === 'a' ? abortable(new Promise<void>(() => {}), signal) : Promise.resolve();
  node.runtime.set('a', 'web', 'running');
  for (let other = 0; other < 20; other++) node.runtime.set(`b${other}`, `c${other}`, 'running');
  await settle();
  assert.equal((await node.events()).length, 20);
  await node.clock.advance(9_999);
  assert.equal(node.pleg.cache.get(uid).containers.length, 0);
  await node.clock.advance(1);
  assert.throws(
    () => node.pleg.cache.get(uid),
    (error) => isKind(error, 'DeadlineExceeded'),
  );
});

test('keeps the IP addresses of a pod when its sandbox is removed, until a new sandbox is ready', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'sandbox-a', 'running');
  await settle();
  assert.deepEqual(node.pleg.cache.get(uid).ips, ['10.0.0.1']);
  node.runtime.set('a', 'sandbox-a', 'exited');
  await node.clock.advance(1_000);
  assert.deepEqual(node.pleg.cache.get(uid).ips, ['10.0.0.1']);
  node.runtime.ips = [];
  node.runtime.set('a', 'sandbox-b', 'running');
  await node.clock.advance(1_000);
  assert.deepEqual(node.pleg.cache.get(uid).ips, []);
});

test("counts events beyond the queue's capacity as discarded, and the cache still converges", async () => {
  await using node = new Watched();
  for (let pod = 0; pod < 1_200; pod++) node.runtime.set(`p${pod}`, `c${pod}`, 'running');
  await node.clock.advance(1_000);
  assert.equal(await node.metric('kubelet_pleg_discard_events'), 200);
  assert.equal(node.pleg.cache.size, 1_200);
  assert.equal((await node.events()).length, 1_000);
  node.runtime.set('p7', 'c7', 'exited');
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), ['ContainerDied c7']);
});

test('does not report a container that exists only between two relists', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.set('a', 'web', 'running');
  node.runtime.set('a', 'web', undefined);
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), []);
  const stamp = node.clock.stamp();
  const news = node.pleg.cache.getNewerThan(uid, stamp, never);
  await node.clock.advance(1_000);
  assert.deepEqual((await news).containers, []);
});

test('relists a pod immediately when a waiter needs it or a relist is requested', async () => {
  await using node = new Watched({ events: 'provoked' });
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
  node.take();
  const before = node.clock.monotonicMs();
  await node.pleg.cache.getNewerThan(uid, node.clock.stamp(), never);
  assert.equal(node.clock.monotonicMs(), before);
  assert.deepEqual(node.take(), ['list a']);
  node.runtime.events = 'lost';
  node.runtime.set('a', 'web', 'exited');
  node.pleg.requestRelist(uid);
  await settle();
  assert.deepEqual(node.take(), ['list a', 'observe a']);
});

test('releases waiters whose timestamp is older than the relist in progress, without a further relist', async () => {
  await using node = new Watched({ events: 'provoked' });
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  node.take();
  const stamp = node.clock.stamp();
  node.pleg.requestRelist(uid);
  await Promise.all([
    node.pleg.cache.getNewerThan(uid, stamp, never),
    node.pleg.cache.getNewerThan(uid, stamp, never),
  ]);
  await settle();
  assert.deepEqual(node.take(), ['list a']);
});

test('relists changes of a terminating pod when its termination ends, or after a second', async () => {
  let isEnded = false;
  await using node = new Watched({ events: 'provoked', isBeingEnded: () => isEnded });
  node.runtime.set('a', 'sandbox-a', 'running');
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  await node.events();
  node.take();
  isEnded = true;
  node.runtime.set('a', 'web', 'exited');
  await node.clock.advance(500);
  assert.deepEqual(node.take(), []);
  node.runtime.set('a', 'sandbox-a', 'exited');
  node.pleg.requestRelist(uid);
  await settle();
  assert.deepEqual(node.take(), ['list a', 'observe a']);
  await node.clock.advance(1_500);
  assert.deepEqual(node.take(), []);
  node.runtime.set('a', 'web', undefined);
  node.runtime.set('a', 'sandbox-a', undefined);
  await node.clock.advance(1_300);
  assert.deepEqual(node.take(), ['list a', 'list']);
});

test('runs at most eight relists concurrently', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.beforeList = (signal) => node.clock.sleep(100, signal);
  // At most eight relists run concurrently; the ninth is queued.
  for (let pod = 0; pod < 9; pod++) node.pleg.requestRelist(podUid(`p${pod}`));
  await node.clock.advance(50);
  assert.equal(node.take().filter((call) => call !== 'list').length, 8);
});

test('logs a relist of a removed pod, and removes the pod at the next relist of all pods', async () => {
  await using node = new Watched({ events: 'provoked' });
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  node.runtime.events = 'lost';
  node.runtime.set('a', 'web', undefined);
  node.take();
  const news = node.pleg.cache.getNewerThan(uid, node.clock.stamp(), never);
  await settle();
  assert.equal(node.pleg.cache.size, node.take().includes('list') ? 0 : 1);
  await node.clock.advance(250);
  assert.deepEqual((await news).containers, []);
  assert.equal(node.pleg.cache.size, 0);
});

test('replaces too many requested relists of single pods by one relist of all pods', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.beforeList = (signal) => node.clock.sleep(10_000, signal);
  for (let pod = 0; pod < 1_000; pod++) node.pleg.requestRelist(podUid(`p${pod}`));
  assert.ok(node.pleg.remembered.looks <= 210);
});

test('observes an exit immediately by its event while all pods are relisted every 30 seconds', async () => {
  await using node = new Watched({ events: 'provoked' });
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  await node.events();
  node.take();
  const before = node.clock.monotonicMs();
  node.runtime.set('a', 'web', 'exited');
  assert.deepEqual(await node.events(), ['ContainerDied web']);
  assert.equal(node.clock.monotonicMs(), before);
  assert.deepEqual(node.take(), ['list a', 'observe a']);
});

test('relists all pods every 30 seconds while events are trusted, otherwise every second', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(10_000);
  node.take();
  await node.clock.advance(60_000);
  assert.equal(node.take().length, 2);
  node.runtime.events = 'lost';
  await node.clock.advance(40_000);
  assert.equal(node.pleg.eventTrust, 'untrusted');
  assert.equal(await node.metric('kubeling_pleg_events_trusted'), 0);
  node.take();
  await node.clock.advance(10_000);
  assert.equal(node.take().length, 10);
  node.runtime.events = 'delivered';
  await node.clock.advance(120_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
});

test('loses the trust in events after a change without an event, and regains it after changes with events', async () => {
  await using node = new Watched({ events: 'yes' });
  await node.clock.advance(5_000);
  assert.equal(node.pleg.eventTrust, 'untrusted');
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(1_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
  await node.clock.advance(40_000);
  node.runtime.events = 'lost';
  node.runtime.set('a', 'web', 'exited');
  await node.clock.advance(33_000);
  assert.equal(node.pleg.eventTrust, 'untrusted');
  assert.deepEqual(await node.events(), ['ContainerStarted web', 'ContainerDied web']);
  node.runtime.events = 'delivered';
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(1_000);
  assert.equal(node.pleg.eventTrust, 'untrusted', 'one event does not compensate a lost one');
  await node.clock.advance(60_000);
  node.runtime.set('a', 'web', 'exited');
  await node.clock.advance(1_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
});

test('stops trusting events after the runtime has not responded for two relist periods, and trusts them again afterwards', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(10_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
  const hang = (signal: AbortSignal) => abortable(new Promise<void>(() => {}), signal);
  const wellMs = node.clock.monotonicMs();
  [node.runtime.beforeProvoke, node.runtime.beforeList] = [hang, hang];
  assert.ok(await node.clock.advanceUntil(() => node.pleg.eventTrust === 'untrusted', 100_000));
  assert.ok(node.clock.monotonicMs() - wellMs < 70_000);
  assert.equal(await node.metric('kubeling_pleg_events_trusted'), 0);
  await node.clock.advance(600_000);
  assert.equal(node.pleg.eventTrust, 'untrusted');
  [node.runtime.beforeProvoke, node.runtime.beforeList] = [async () => {}, async () => {}];
  await node.clock.advance(35_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
});

test('counts changes with events as proof that events arrive, but not a failed attempt to provoke an event', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(10_000);
  node.runtime.beforeProvoke = async () => {
    throw new Error('forbidden');
  };
  for (const state of ['running', 'exited', 'running', 'exited'] as const) {
    node.runtime.set('a', 'web', state);
    await node.clock.advance(40_000);
    assert.equal(node.pleg.eventTrust, 'trusted');
  }
  await node.clock.advance(40_000);
  assert.equal(node.pleg.eventTrust, 'untrusted');
});

test('for a runtime that cannot provoke events, trusts events without a proof as long as relists succeed', async () => {
  const beforeProvoke = async () => {
    throw new KubelingError('CRI_UNSUPPORTED', 'not supported');
  };
  for (const events of ['yes', 'provoked'] as const) {
    await using node = new Watched({ events });
    node.runtime.beforeProvoke = beforeProvoke;
    await node.clock.advance(1_000);
    node.runtime.set('a', 'web', 'running');
    await node.clock.advance(3_600_000);
    assert.equal(node.pleg.eventTrust, 'trusted');
    node.runtime.beforeList = (signal) => abortable(new Promise<void>(() => {}), signal);
    await node.clock.advance(65_000);
    assert.equal(node.pleg.eventTrust, 'untrusted');
    node.runtime.beforeList = async () => {};
    await node.clock.advance(120_000);
    node.runtime.set('a', 'web', 'exited');
    await node.clock.advance(1_000);
    assert.equal(node.pleg.eventTrust, 'trusted');
  }
});

test('does not count a slightly delayed event as missing', async () => {
  await using node = new Watched({ events: 'yes' });
  await settle();
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(1_000);
  node.runtime.events = 'lost';
  node.runtime.set('a', 'web', 'exited');
  node.runtime.events = 'delivered';
  node.pleg.requestRelist(uid);
  await node.clock.advance(1_900);
  node.runtime.hint({ containerId: 'web', what: 'stopped' });
  await node.clock.advance(10_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
});

test('relists a pod until the runtime lists the change that it announced', async () => {
  await using node = new Watched({ events: 'provoked' });
  node.runtime.set('a', 'web', 'running');
  await node.clock.advance(2_000);
  await node.events();
  node.runtime.hint({ containerId: 'web', what: 'stopped' });
  await node.clock.advance(100);
  node.runtime.events = 'lost';
  node.runtime.set('a', 'web', 'exited');
  node.runtime.events = 'delivered';
  await node.clock.advance(250);
  assert.deepEqual(await node.events(), ['ContainerDied web']);
  node.take();
  await node.clock.advance(5_000);
  assert.deepEqual(node.take(), []);
  assert.equal(node.pleg.remembered.hints, 0);
});

test('relists all pods for a hint about an unknown container, and drops the hint when no pod has the container', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(2_000);
  node.take();
  node.runtime.set('b', 'new', 'running');
  await node.clock.advance(15_000);
  assert.deepEqual(await node.events(), ['ContainerStarted new']);
  node.take();
  for (let again = 0; again < 5; again++) {
    node.runtime.hint({ containerId: 'foreign', what: 'started' });
    await node.clock.advance(1_000);
  }
  await node.clock.advance(12_000);
  assert.equal(node.take().length, 3);
  assert.equal(node.pleg.remembered.hints, 0);
});

test('triggers a sync only by the first event of a relist', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(2_000);
  node.runtime.set('b', 'sandbox', 'running');
  node.runtime.set('b', 'container', 'running');
  node.pleg.requestRelist(podUid('b'));
  await settle();
  const open = new AbortController().signal;
  const [first, second] = [await node.pleg.nextEvent(open), await node.pleg.nextEvent(open)];
  assert.deepEqual(
    [first, second].map((event) => event && 'sync' in event && event.sync),
    [false, 'requested'],
  );
});

test("the relist after a container's start also serves the container's hint, without a relist of all pods", async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(2_000);
  node.take();
  node.runtime.set('b', 'new', 'running');
  node.pleg.requestRelist(podUid('b'));
  await node.clock.advance(5_000);
  assert.deepEqual(await node.events(), ['ContainerStarted new']);
  assert.equal(node.take().filter((call) => call === 'list').length, 0);
  assert.equal(node.pleg.remembered.hints, 0);
});

test('reopens a broken event stream, and relists all pods every second until then', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(5_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
  node.runtime.breakStreams();
  await settle();
  assert.equal(node.pleg.eventTrust, 'untrusted');
  assert.equal(await node.metric('kubelet_evented_pleg_connection_error_count'), 1);
  await node.clock.advance(5_000);
  assert.equal(node.runtime.subscriptions, 2);
  assert.equal(node.pleg.eventTrust, 'trusted');
  assert.equal(await node.metric('kubelet_evented_pleg_connection_success_count'), 2);
});

test('relists all pods every second without log messages when the runtime has no events', async () => {
  await using node = new Watched();
  await node.clock.advance(60_000);
  assert.equal(node.take().length, 61);
  assert.equal(node.logs.records.toArray().length, 0);
});

test('neither blocks nor skips a relist after clock jumps of an hour', async () => {
  await using node = new Watched();
  await settle();
  node.take();
  node.clock.jumpWall(3_600_000);
  await node.clock.advance(3_000);
  node.clock.jumpWall(-7_200_000);
  await node.clock.advance(3_000);
  assert.equal(node.take().length, 6);
  assert.equal(node.pleg.problem(), undefined);
  await node.pleg.cache.getNewerThan(uid, node.clock.stamp() - 1_000, never);
});

test('counts running pods and containers by state', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'sandbox-a', 'running');
  node.runtime.set('a', 'web', 'exited');
  node.runtime.set('a', 'db', 'running');
  await settle();
  assert.equal(await node.metric('kubelet_running_pods'), 1);
  assert.equal(await node.metric('kubelet_running_containers{container_state="exited"}'), 1);
  node.runtime.set('a', 'web', undefined);
  await node.clock.advance(1_000);
  assert.equal(await node.metric('kubelet_running_containers{container_state="exited"}'), 0);
});

test('counts running pods and containers after relists of single pods, too', async () => {
  await using node = new Watched({ events: 'provoked' });
  await node.clock.advance(5_000);
  assert.equal(node.pleg.eventTrust, 'trusted');
  node.take();
  const counted = async () => [
    await node.metric('kubelet_running_pods'),
    await node.metric('kubelet_running_containers{container_state="running"}'),
    await node.metric('kubelet_running_containers{container_state="exited"}'),
  ];
  assert.deepEqual(await counted(), [0, 0, 0]);
  node.runtime.set('a', 'sandbox-a', 'running');
  node.runtime.set('a', 'web', 'running');
  node.pleg.requestRelist(uid);
  await settle();
  assert.deepEqual(await counted(), [1, 1, 0]);
  node.runtime.set('a', 'web', 'exited');
  await settle();
  assert.deepEqual(await counted(), [1, 0, 1]);
  assert.ok(!node.take().includes('list'), 'no relist of all pods was needed');
  node.runtime.set('a', 'sandbox-a', undefined);
  node.runtime.set('a', 'web', undefined);
  await node.clock.advance(1_000);
  assert.deepEqual(await counted(), [0, 0, 0]);
});
