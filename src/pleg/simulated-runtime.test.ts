import assert from 'node:assert/strict';
import { test } from 'node:test';
import { criLister } from '../../test/fakes/cri-lister.ts';
import { SimulatedNode } from '../../test/fakes/simulated-node.ts';
import { type Flavour, randomFaults, scriptedFaults } from '../../test/simulator/index.ts';
import { createCriClient } from '../cri/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { Pleg } from './pleg.ts';
import { runtimeEvents } from './runtime-events.ts';

/** A PLEG with the simulated runtime, which announces an exit before it lists it. */
class Watched implements AsyncDisposable {
  readonly node: SimulatedNode;
  readonly pleg: Pleg;
  /** Each lifecycle event with the virtual time of its report. */
  readonly told: { readonly event: string; readonly atMs: number }[] = [];
  readonly #controller = new AbortController();
  readonly #running: Promise<unknown>;

  constructor(options: ConstructorParameters<typeof SimulatedNode>[0] = {}) {
    this.node = new SimulatedNode(options);
    const { clock } = this.node;
    const cri = createCriClient({ transport: this.node.transport, clock });
    this.pleg = new Pleg({
      clock,
      random: seededRandom(3),
      log: collectLogs(clock).logger,
      runtime: criLister(cri),
      events: runtimeEvents(cri),
    });
    this.#running = Promise.all([this.pleg.run(this.#controller.signal), this.#read()]);
  }

  async #read(): Promise<void> {
    for (;;) {
      const event = await this.pleg.nextEvent(this.#controller.signal).catch(() => undefined);
      if (event === undefined) return;
      const about = event.type === 'PodSync' ? '' : event.containerId;
      this.told.push({ event: `${event.type} ${about}`, atMs: this.node.clock.monotonicMs() });
    }
  }

  async until(event: string, limitMs = 60_000): Promise<number> {
    const found = () => this.told.find((each) => each.event === event);
    assert.ok(await this.node.clock.advanceUntil(() => found() !== undefined, limitMs), `no ${event}`);
    return found()?.atMs ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error('The test has ended'));
    await this.node.done(this.#running);
    this.node[Symbol.dispose]();
  }
}

for (const version of ['containerd-1.6', 'containerd-2'] satisfies Flavour[]) {
  test(`on ${version}, observes an exit within milliseconds while all pods are relisted every 30 seconds`, async () => {
    await using watched = new Watched({ flavour: version });
    const { node, pleg } = watched;
    await node.clock.advance(100);
    const { containerId } = await node.pod('sleep 100; exit 1');
    await watched.until(`ContainerStarted ${containerId}`);
    await node.clock.advance(5_000);
    assert.equal(pleg.eventTrust, 'trusted');
    node.runtime.crashContainer(containerId);
    const diedMs = node.clock.monotonicMs();
    assert.ok((await watched.until(`ContainerDied ${containerId}`)) - diedMs < 100);
  });
}

test('when the runtime lists an exit half a second after its event, observes the exit within another half second', async () => {
  await using watched = new Watched({ latency: (step) => (step === 'exit-seen' ? 500 : 0) });
  const { node } = watched;
  await node.clock.advance(100);
  const { containerId } = await node.pod('sleep 1000');
  await watched.until(`ContainerStarted ${containerId}`);
  await node.clock.advance(5_000);
  node.runtime.crashContainer(containerId);
  const diedMs = node.clock.monotonicMs();
  assert.ok((await watched.until(`ContainerDied ${containerId}`)) - diedMs < 1_000);
});

test('relists every second when the runtime has no events', async () => {
  await using watched = new Watched();
  const { node, pleg } = watched;
  await node.clock.advance(100);
  const first = await node.pod('sleep 1000');
  await watched.until(`ContainerStarted ${first.containerId}`);
  await node.clock.advance(40_000);
  assert.equal(pleg.eventTrust, 'trusted');
  node.runtime.setFaults(scriptedFaults({ events: [{ topic: '*', fault: { kind: 'drop' } }] }));
  node.runtime.crashContainer(first.containerId);
  await watched.until(`ContainerDied ${first.containerId}`, 31_000);
  await node.clock.advance(3_000);
  assert.equal(pleg.eventTrust, 'untrusted');
  const second = await node.start(
    await node.create(first.podSandboxId, { metadata: { name: 'second', attempt: 0 } }),
  );
  const startedMs = node.clock.monotonicMs();
  assert.ok((await watched.until(`ContainerStarted ${second}`)) - startedMs < 1_200);
  node.runtime.setFaults(undefined);
  await node.clock.advance(70_000);
  node.runtime.crashContainer(second);
  await watched.until(`ContainerDied ${second}`);
  await node.clock.advance(3_000);
  assert.equal(pleg.eventTrust, 'trusted');
});

test('reports no wrong events after a restart of the runtime', async () => {
  await using watched = new Watched();
  const { node, pleg } = watched;
  await node.clock.advance(100);
  const { containerId } = await node.pod('sleep 10000');
  await watched.until(`ContainerStarted ${containerId}`);
  await node.clock.advance(5_000);
  const before = watched.told.length;
  node.runtime.restart({ state: 'kept', downMs: 120_000 });
  await node.clock.advance(119_000);
  assert.equal(pleg.problem(), undefined);
  await node.clock.advance(10_000);
  assert.equal(watched.told.length, before);
  node.runtime.crashContainer(containerId);
  const diedMs = node.clock.monotonicMs();
  assert.ok((await watched.until(`ContainerDied ${containerId}`)) - diedMs < 1_500);
});

test('reports every exit eventually after any failures of calls and events', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    await using watched = new Watched({ seed });
    const { node } = watched;
    const { podSandboxId, containerId } = await node.pod('sleep 20; exit 1');
    const other = await node.start(
      await node.create(podSandboxId, { metadata: { name: 'other', attempt: 0 } }),
    );
    const rates = { delay: 0.1, error: 0.2, hang: 0.02, eventDropped: 0.3, eventLate: 0.2, streamCut: 0.05 };
    node.runtime.setFaults(randomFaults({ random: seededRandom(seed), rates }));
    await node.clock.advance(60_000);
    node.runtime.crashContainer(other);
    await node.clock.advance(60_000);
    node.runtime.setFaults(undefined);
    await watched.until(`ContainerDied ${containerId}`, 300_000);
    await watched.until(`ContainerDied ${other}`, 300_000);
    for (const id of [containerId, other]) {
      assert.equal(watched.told.filter(({ event }) => event === `ContainerDied ${id}`).length, 1);
    }
  }
});
