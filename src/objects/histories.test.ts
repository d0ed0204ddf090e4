import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { ConfigMap } from '../kinds/index.ts';
import { collectLogs, KubelingError, pick, type Random, randomInt, seededRandom } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { type ChangeDetection, makePodObjects } from './pod-objects.ts';

/**
 * Adds, changes and removes pods and objects in random order, with an API server that is
 * unavailable at times. For every order, reads must return only values that the objects have had,
 * and nothing may leak.
 */
const names = ['a', 'b', 'c'];
const uids = ['one', 'two', 'three'].map(podUid);
const { signal } = new AbortController();

class History {
  readonly #random: Random;
  readonly clock = new VirtualClock();
  readonly api = new ScriptedApi();
  readonly #objects;
  /** The names of the objects to which each pod refers. */
  readonly #pods = new Map<string, readonly string[]>();
  readonly #values = new Map<string, string>();
  /**
   * The values that each object has had since the start of the test: a read may return any of them.
   */
  readonly #seen = new Map<string, Set<string | undefined>>();
  #count = 0;

  constructor(seed: number, detection: ChangeDetection) {
    this.#random = seededRandom(seed);
    const { clock, api } = this;
    const logger = collectLogs(clock).logger;
    this.#objects = makePodObjects(detection, {
      api,
      clock,
      random: seededRandom(seed),
      logger,
      syncFrequencyMs: 10_000,
      nodeAnnotations: () => undefined,
    });
  }

  async run(steps: number): Promise<void> {
    const end = new AbortController();
    const running = this.#objects.run(end.signal).catch(() => {});
    for (let step = 0; step < steps; step++) await this.#step();
    await this.#allIsWell();
    for (const uid of uids) this.#objects.unregister(uid);
    end.abort(new Error('over'));
    await running;
    await settle();
    assert.deepEqual([this.api.watches, this.clock.pendingTimers], [0, 0], 'everything is released');
  }

  async #step(): Promise<void> {
    const name = pick(this.#random, names) ?? 'a';
    const uid = pick(this.#random, uids) ?? podUid('one');
    const actions = [
      () => this.#register(uid),
      () => this.#unregister(uid),
      () => this.#put(name),
      () => this.#remove(name),
      () => this.#read(name),
      () => this.#read(name),
      () => this.clock.advance(randomInt(this.#random, 200_000)),
      () => this.#flip(),
    ];
    await pick(this.#random, actions)?.();
    await settle();
  }

  #register(uid: string): void {
    const refers = names.filter(() => this.#random.next() < 0.5);
    this.#pods.set(uid, refers);
    const volumes = refers.map((name) => ({ name, configMap: { name } }));
    this.#objects.register(aPod({ metadata: { uid: podUid(uid) }, spec: { volumes } }));
  }

  #unregister(uid: string): void {
    this.#pods.delete(uid);
    this.#objects.unregister(podUid(uid));
  }

  #put(name: string): void {
    const value = `${this.#count++}`;
    this.#values.set(name, value);
    this.#note(name, value);
    this.api.put<ConfigMap>('configmaps', { metadata: { namespace: 'default', name }, data: { value } });
  }

  #remove(name: string): void {
    this.#values.delete(name);
    this.#note(name, undefined);
    this.api.remove('configmaps', `default/${name}`);
  }

  #flip(): void {
    this.api.failure = this.api.failure === undefined ? serverAway() : undefined;
  }

  #note(name: string, value: string | undefined): void {
    this.#seen.set(name, (this.#seen.get(name) ?? new Set([undefined])).add(value));
  }

  async #read(name: string): Promise<void> {
    const outcome = this.#objects.configMap('default', name, signal).then(
      (found) => ({ value: found?.data?.['value'] }),
      (error: unknown) => ({ code: error instanceof KubelingError ? error.code : `${error}` }),
    );
    await this.clock.advance(1_000);
    const isReferred = [...this.#pods.values()].some((refers) => refers.includes(name));
    const got = await outcome;
    if ('code' in got) this.#checkFailure(got.code, isReferred);
    else this.#checkValue(name, got.value, isReferred);
  }

  #checkFailure(code: string, isReferred: boolean): void {
    const mayBe = isReferred ? ['OBJECT_UNSYNCED', 'API_FAILED'] : ['OBJECT_NOT_REGISTERED'];
    assert.ok(mayBe.includes(code), `${code} for an object that is ${isReferred ? '' : 'not '}referred to`);
  }

  #checkValue(name: string, value: string | undefined, isReferred: boolean): void {
    assert.ok(isReferred, 'an object without references is not read');
    assert.ok((this.#seen.get(name) ?? new Set([undefined])).has(value), 'the value that was read did exist');
  }

  /**
   * When the API server is available again, every reader gets the current value after enough time.
   */
  async #allIsWell(): Promise<void> {
    this.api.failure = undefined;
    this.#register('one');
    await this.clock.advance(120_000);
    for (const name of this.#pods.get('one') ?? []) {
      const found = this.#objects.configMap('default', name, signal);
      await this.clock.advance(1_000);
      assert.equal((await found)?.data?.['value'], this.#values.get(name));
    }
  }
}

for (const detection of ['Watch', 'Cache'] as const) {
  test(`${detection}: for every history, readers get a current or former value, finally the current one, and nothing leaks`, async () => {
    for (let seed = 1; seed <= 120; seed++) {
      const history = new History(seed, detection);
      await history.run(60).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
    }
  });
}
