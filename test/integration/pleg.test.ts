import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { collectLogs, realClock, seededRandom } from '../../src/lib/index.ts';
import { type EventSource, Pleg, runtimeEvents } from '../../src/pleg/index.ts';
import { podUid } from '../../src/pods/index.ts';
import type { Backend } from '../contract/backend.ts';
import { containerdBackend } from '../contract/containerd-backend.ts';
import { Pods } from '../contract/pods.ts';
import { criLister } from '../fakes/cri-lister.ts';

const clock = realClock();
const never = new AbortController().signal;
let backend: Backend;

before(async () => {
  backend = await containerdBackend();
});
after(() => backend[Symbol.asyncDispose]());

/** A PLEG on real containerd whose event stream the test can cut off. */
class Watched implements AsyncDisposable {
  readonly pleg: Pleg;
  readonly told = new Map<string, number>();
  readonly #controller = new AbortController();
  readonly #running: Promise<unknown>;
  events: 'pass' | 'cut' = 'pass';

  constructor() {
    const source = runtimeEvents(backend.cri);
    const through: EventSource = { events: (signal) => this.#pass(source.events(signal)) };
    this.pleg = new Pleg({
      clock,
      random: seededRandom(1),
      log: collectLogs(clock).logger,
      runtime: criLister(backend.cri),
      events: through,
    });
    this.#running = Promise.all([this.pleg.run(this.#controller.signal), this.#read()]);
  }

  async *#pass<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const event of events) if (this.events === 'pass') yield event;
  }

  async #read(): Promise<void> {
    for (;;) {
      const event = await this.pleg.nextEvent(this.#controller.signal).catch(() => undefined);
      if (event === undefined) return;
      if (event.type !== 'PodSync') this.told.set(`${event.type} ${event.containerId}`, clock.monotonicMs());
    }
  }

  until(event: string): Promise<number> {
    return backend.until(event, async () => this.told.get(event));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error('the test has ended'));
    await this.#running;
  }
}

test('reports a container exit by its event long before the next relist, and by a relist when there are no events', async (t) => {
  await using pods = new Pods(backend, 'pleg');
  await using watched = new Watched();
  const { pleg } = watched;
  const pod = await pods.sandbox();
  const trusted = await backend.until('events to be trusted', async () => {
    await pod.run({ script: 'exit 0', name: `noise-${clock.stamp()}` });
    return pleg.eventTrust === 'trusted' ? true : undefined;
  });
  assert.ok(trusted);
  const latencies: number[] = [];
  for (let round = 0; round < 5; round++) {
    const containerId = await pod.run({ script: 'sleep 1000', name: `sleeper-${round}` });
    await watched.until(`ContainerStarted ${containerId}`);
    const stoppedMs = clock.monotonicMs();
    await backend.cri.stopContainer({ containerId, timeout: 0n }, never);
    latencies.push((await watched.until(`ContainerDied ${containerId}`)) - stoppedMs);
  }
  t.diagnostic(
    `from the call to stop to ContainerDied: ${latencies.map((ms) => ms.toFixed(0)).join(', ')} ms`,
  );
  // Without events, an exit is found only by the next relist, half a minute after the previous
  // relist.
  const middle = latencies.toSorted((each, other) => each - other)[2] ?? Number.POSITIVE_INFINITY;
  assert.ok(middle < 5_000, `${latencies}`);
  assert.equal(pleg.eventTrust, 'trusted');

  watched.events = 'cut';
  const containerId = await pod.run({ script: 'sleep 1000', name: 'unheard' });
  pleg.requestRelist(podUid(pod.config.metadata?.uid ?? ''));
  await watched.until(`ContainerStarted ${containerId}`);
  await backend.until('the trust to end', async () => (pleg.eventTrust === 'untrusted' ? true : undefined));
  const stoppedMs = clock.monotonicMs();
  await backend.cri.stopContainer({ containerId, timeout: 0n }, never);
  const lateMs = (await watched.until(`ContainerDied ${containerId}`)) - stoppedMs;
  t.diagnostic(`with events cut off: ${lateMs.toFixed(0)} ms`);
  assert.ok(lateMs < 25_000, `${lateMs}`);
});
