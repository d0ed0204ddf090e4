import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, KubelingError, seededRandom, Waiters } from '../lib/index.ts';
import { apiError } from './client/api-error.ts';
import type { ApiClient, ApiList, ApiObject, ListQuery, WatchEvent, WatchQuery } from './client/client.ts';
import { apiResources } from './client/resource.ts';
import { Reflector } from './reflector/reflector.ts';

type Fault = 'cut' | 'end' | 'gone' | 'busy' | 'away' | 'no-stream' | 'well';

const faultErrors: Readonly<Partial<Record<Fault, () => Error>>> = {
  cut: () => new KubelingError('API_UNAVAILABLE', 'cut'),
  away: () => new KubelingError('API_UNAVAILABLE', 'refused'),
  gone: () => refusal(410),
  busy: () => refusal(429),
};

function refusal(status: number): KubelingError {
  return apiError({ what: 'watch', status, apiStatus: {} });
}

/** A fake API server whose history of watch events may be truncated. */
class SmallServer implements Pick<ApiClient, 'list' | 'watch'> {
  readonly objects = new Map<string, ApiObject>();
  readonly #log: { readonly version: number; readonly event: WatchEvent<ApiObject> }[] = [];
  readonly #more = new Waiters<void>();
  #version = 1;
  #forgotten = 0;
  #interruptions = 0;
  fault: Fault = 'well';

  put(name: string): void {
    const known = this.objects.get(name);
    const uid = known?.metadata?.uid ?? `uid-${this.#version}`;
    const object = { metadata: { name, uid, resourceVersion: `${++this.#version}` } };
    this.objects.set(name, object);
    this.#tell({ type: known === undefined ? 'ADDED' : 'MODIFIED', object });
  }

  remove(name: string): void {
    const known = this.objects.get(name);
    if (known === undefined) return;
    this.objects.delete(name);
    const metadata = { ...known.metadata, resourceVersion: `${++this.#version}` };
    this.#tell({ type: 'DELETED', object: { metadata } });
  }

  forget(): void {
    this.#forgotten = this.#version;
  }

  /** Changes how the server fails, also for open watches. */
  turn(fault: Fault): void {
    this.fault = fault;
    this.#interruptions++;
    this.#more.resolveAll();
  }

  async list<T extends ApiObject>(_query: ListQuery): Promise<ApiList<T>> {
    if (this.fault === 'away' || this.fault === 'busy') throw faultErrors[this.fault]?.();
    return { metadata: { resourceVersion: `${this.#version}` }, items: [...this.objects.values()] as T[] };
  }

  async *watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>> {
    const { fault } = this;
    if (fault === 'no-stream' && query.begin === 'initial') throw refusal(422);
    if (fault !== 'well' && fault !== 'no-stream' && fault !== 'end') throw faultErrors[fault]?.();
    if (fault === 'end') return;
    const events = query.begin === 'initial' ? this.#initial(signal) : this.#from(query, signal);
    for await (const event of events) yield event as WatchEvent<T>;
  }

  async *#initial(signal: AbortSignal): AsyncIterable<WatchEvent<ApiObject>> {
    const version = this.#version;
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    for (const object of [...this.objects.values()]) yield { type: 'ADDED', object };
    yield { type: 'BOOKMARK', object: { metadata: { resourceVersion: `${version}`, annotations } } };
    yield* this.#following(version, signal);
  }

  #from({ resourceVersion }: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<ApiObject>> {
    const version = Number(resourceVersion);
    if (version < this.#forgotten) throw refusal(410);
    // The watch starts one event early, so that one event is delivered twice.
    return this.#following(version - 1, signal);
  }

  async *#following(from: number, signal: AbortSignal): AsyncIterable<WatchEvent<ApiObject>> {
    const interruptions = this.#interruptions;
    for (let at = from; ; ) {
      for (const { version, event } of this.#log.filter((entry) => entry.version > at)) {
        at = version;
        yield event;
      }
      if (interruptions !== this.#interruptions && this.fault !== 'well') {
        const error = faultErrors[this.fault]?.();
        if (error !== undefined) throw error;
        return;
      }
      await this.#more.wait(signal);
    }
  }

  #tell(event: WatchEvent<ApiObject>): void {
    this.#log.push({ version: this.#version, event });
    this.#more.resolveAll();
  }
}

type Move =
  | { readonly do: 'put' | 'remove'; readonly name: string }
  | { readonly do: 'turn'; readonly fault: Fault }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'forget' | 'restart' };

const name = fc.constantFrom('a', 'b', 'c');
const faults: readonly Fault[] = ['cut', 'end', 'gone', 'busy', 'away', 'no-stream', 'well'];
const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ do: fc.constantFrom('put' as const, 'remove' as const), name }),
  fc.record({ do: fc.constant('turn' as const), fault: fc.constantFrom(...faults) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 500, 2_000, 60_000) }),
  fc.record({ do: fc.constantFrom('forget' as const, 'restart' as const) }),
);

async function play(moves: readonly Move[]) {
  const clock = new VirtualClock();
  const server = new SmallServer();
  const { logger } = collectLogs(clock);
  const options = { client: server, clock, random: seededRandom(5), logger };
  const reflector = new Reflector({ ...options, query: { resource: apiResources.nodes } });
  const trace: string[] = [];
  const folded = new Map<string, ApiObject>();
  let set: readonly ApiObject[] = [];
  reflector.onChange((change) => {
    const { uid } = change.object.metadata;
    trace.push(`${clock.monotonicMs()} ${change.type} ${uid} ${change.object.metadata.resourceVersion}`);
    assert.equal(
      folded.has(uid),
      change.type !== 'added',
      `${change.type} of ${uid} matches earlier changes`,
    );
    if (change.type === 'deleted') folded.delete(uid);
    else folded.set(uid, change.object);
  });
  reflector.onSet((objects) => {
    set = objects;
  });
  reflector.start();
  for (const step of moves) {
    if (step.do === 'put') server.put(step.name);
    else if (step.do === 'remove') server.remove(step.name);
    else if (step.do === 'turn') server.turn(step.fault);
    else if (step.do === 'wait') await clock.advance(step.ms);
    else if (step.do === 'forget') server.forget();
    else void reflector.stop().then(() => reflector.start());
  }
  server.turn('well');
  await clock.advance(120_000);
  const texts = (objects: Iterable<ApiObject>) =>
    [...objects].map(({ metadata }) => `${metadata?.uid}@${metadata?.resourceVersion}`).sort();
  assert.equal(reflector.hasSynced, true);
  assert.deepEqual(
    texts(reflector.list()),
    texts(server.objects.values()),
    'the cached objects equal those of the server',
  );
  assert.deepEqual(
    texts(folded.values()),
    texts(server.objects.values()),
    'the delivered changes lead to the same state',
  );
  assert.deepEqual(texts(set), texts(server.objects.values()), 'and the last delivered set');
  await reflector[Symbol.asyncDispose]();
  assert.equal(clock.pendingTimers, 0, 'nothing is left behind');
  return trace;
}

test('converges to the state of the server after any sequence of failures', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 30 }), async (moves) => {
      assert.deepEqual(await play(moves), await play(moves));
    }),
    { numRuns: 60 },
  );
});
