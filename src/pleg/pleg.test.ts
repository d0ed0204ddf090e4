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

/** A PLEG on a runtime in memory, under virtual time. */
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

  /** All queued events. */
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
    this.#controller.abort(new Error('the test is over'));
    await this.#running;
    assert.equal(this.clock.pendingTimers, 0);
    assert.equal(this.runtime.subscribers, 0);
  }
}

test('relists immediately, then a second after each relist', async () => {
  await using node = new Watched();
  node.runtime.beforeList = (signal) => node.clock.sleep(500, signal);
  await node.clock.advance(4_400);
  assert.deepEqual(node.take(), ['list', 'list', 'list']);
});

test('reports each event of containers and sandboxes once', async () => {
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

test('a created container gives no event but updates the cache', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.set('a', 'web', 'created');
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), []);
  assert.equal(node.pleg.cache.get(uid).containers[0]?.state, 'created');
});

test('a reinspection without changes gives PodSync', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'web', 'running');
  await settle();
  await node.events();
  node.pleg.requestReinspect(uid);
  await node.clock.advance(1_000);
  assert.deepEqual(await node.events(), ['PodSync a']);
});

test('a relist that started before the end of a sync does not release the worker', async () => {
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

test('a failed listing advances nothing and is logged once', async () => {
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

test('is not healthy before the pods of the first listing are cached', async () => {
  await using node = new Watched();
  node.runtime.set('a', 'web', 'running');
  node.runtime.beforeObserve = (_uid, signal) => node.clock.sleep(100, signal);
  await settle();
  assert.equal(node.pleg.problem(), 'pleg has yet to be successful');
  await node.clock.advance(100);
  assert.equal(node.pleg.problem(), undefined);
});

test('a failing inspection does not block other pods, is returned to waiters, and is retried', async () => {
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

test('a pod with a failed inspection is relisted every second, even after a failed listing', async () => {
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

test('a hanging inspection blocks no other pod and fails after its deadline', async () => {
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

test('addresses are kept when the sandbox is removed, until a new one is ready', async () => {
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

test("events beyond the queue's capacity are counted as discarded, and the state converges", async () => {
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

test('a container that exists only between two relists is not reported, and a resync gives the truth', async () => {
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

test('a pod is relisted immediately when it is awaited or requested', async () => {
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

test('a relist in progress serves waiters with an older stamp', async () => {
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

test('changes of a terminating pod are relisted at its end, or after a second', async () => {
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

test('a request made before a relist of all pods started is served by it', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.beforeList = (signal) => node.clock.sleep(100, signal);
  // Eight relists run concurrently; the ninth is queued.
  for (let pod = 0; pod < 9; pod++) node.pleg.requestRelist(podUid(`p${pod}`));
  await node.clock.advance(50);
  assert.equal(node.take().filter((call) => call !== 'list').length, 8);
});

test('a relist of a removed pod is logged, and a relist of all pods removes it', async () => {
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

test('too many requests become one relist of all pods', async () => {
  await using node = new Watched();
  await settle();
  node.runtime.beforeList = (signal) => node.clock.sleep(10_000, signal);
  for (let pod = 0; pod < 1_000; pod++) node.pleg.requestRelist(podUid(`p${pod}`));
  assert.ok(node.pleg.remembered.looks <= 210);
});

test('an exit is observed immediately by its event while all pods are relisted every 30 seconds', async () => {
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

test('all pods are relisted every 30 seconds while events are trusted, otherwise every second', async () => {
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

test('an unannounced change ends the trust in events, and announced ones restore it', async () => {
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

test('a hanging runtime loses the trust after two periods and regains it afterwards', async () => {
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

test('a failed provocation is no proof, but announced changes are', async () => {
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

test('without provoked events a quiet runtime is trusted while it can be listed', async () => {
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

test('a slightly delayed event does not count as missed', async () => {
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

test('an announced change is relisted until the runtime lists it', async () => {
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

test('a hint about an unknown container relists all pods, and is dropped when no pod has it', async () => {
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

test('only the first event of a relist triggers a sync', async () => {
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
    [false, 'asked-for'],
  );
});

test("the relist after a container's start covers the hint, without a relist of all pods", async () => {
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

test('a broken stream is reopened, and meanwhile all pods are relisted every second', async () => {
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

test('without runtime events all pods are relisted every second, without log messages', async () => {
  await using node = new Watched();
  await node.clock.advance(60_000);
  assert.equal(node.take().length, 61);
  assert.equal(node.logs.records.toArray().length, 0);
});

test('clock jumps of an hour neither block nor skip a relist', async () => {
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

test('counts them after relists of single pods too', async () => {
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
