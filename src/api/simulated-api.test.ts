import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminUser } from '../../test/fakes/api-users.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type ApiFaultRates, randomApiFaults, SimulatedApi } from '../../test/simulator/api/index.ts';
import { collectLogs, instant, seededRandom } from '../lib/index.ts';
import type { ApiObject } from './client/client.ts';
import { apiResources } from './client/resource.ts';
import { EventRecorder, podSubject } from './events/index.ts';
import { Reflector } from './reflector/reflector.ts';

const services = apiResources.services;

function createHarness(seed: number, streamingLists: 'offered' | 'refused' = 'offered') {
  const clock = new VirtualClock();
  const random = seededRandom(seed);
  const api = new SimulatedApi({ clock, random, streamingLists, abandonedEffect: 0 });
  const { logger } = collectLogs(clock);
  const client = api.client(adminUser);
  return { clock, api, client, random, logger };
}

function reflected(made: ReturnType<typeof createHarness>) {
  const reflector = new Reflector<ApiObject>({ ...made, query: { resource: services } });
  reflector.start();
  return reflector;
}

const service = (name: string, port: number) => ({
  metadata: { name, namespace: 'default' },
  spec: { clusterIP: '10.0.0.1', ports: [{ port }] },
});

const texts = (objects: readonly ApiObject[]) =>
  objects.map(({ metadata }) => `${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion}`).sort();

const rates: ApiFaultRates = {
  delay: 0.1,
  refuse: 0.1,
  unreachable: 0.1,
  hang: 0.03,
  lostAnswer: 0.05,
  stale: 0.1,
  eventLate: 0.1,
  eventDuplicated: 0.1,
  watchCut: 0.05,
  watchGone: 0.05,
  watchEnded: 0.05,
};

for (const streaming of ['offered', 'refused'] as const) {
  test(`reflects the state of the server after random failures, with initial events in watches ${streaming}`, async () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 15; seed++) {
      const created = createHarness(seed, streaming);
      const { api, clock } = created;
      api.setFaults(randomApiFaults({ random: seededRandom(seed), rates }));
      const reflector = reflected(created);
      for (let round = 0; round < 40; round++) {
        const name = `s${round % 7}`;
        if (round % 11 === 10) api.delete({ resource: services, namespace: 'default', name });
        else api.put(services, service(name, round + 1));
        if (round % 13 === 12) api.compact();
        await clock.advance(5_000);
      }
      for (const kind of Object.keys(api.faultsStruck())) kinds.add(kind);
      api.setFaults(undefined);
      await clock.advance(120_000);
      assert.deepEqual(texts(reflector.list()), texts(api.objects(services)), `seed ${seed}`);
      await reflector[Symbol.asyncDispose]();
      assert.equal(api.held().watches, 0, `seed ${seed}`);
      api.close();
      assert.equal(clock.pendingTimers, 0, `seed ${seed}`);
    }
    assert.ok(kinds.size > 8, [...kinds].join());
  });
}

for (const how of ['refusing', 'silent'] as const) {
  test(`serves the cache while the server is unreachable (${how}), and is current again afterwards`, async () => {
    const created = createHarness(1);
    const { api, clock } = created;
    api.put(services, service('a', 1));
    const reflector = reflected(created);
    await clock.advance(1_000);
    assert.equal(reflector.hasSynced, true);
    api.goAway(how);
    api.put(services, service('b', 2));
    api.delete({ resource: services, namespace: 'default', name: 'a' });
    await clock.advance(300_000);
    assert.deepEqual(
      reflector.list().map(({ metadata }) => metadata.name),
      ['a'],
    );
    assert.equal(reflector.hasSynced, true);
    api.comeBack();
    await clock.advance(60_000);
    assert.deepEqual(
      reflector.list().map(({ metadata }) => metadata.name),
      ['b'],
    );
    assert.equal(api.calls.of({ verb: 'list' }), 0, 'without a list');
    await reflector[Symbol.asyncDispose]();
  });
}

test('leaves no timers or connections behind after repeated outages', async () => {
  const created = createHarness(2);
  const { api, clock } = created;
  const reflector = reflected(created);
  for (let round = 0; round < 20; round++) {
    api.goAway('refusing');
    await clock.advance(3_000);
    api.comeBack();
    api.put(services, service(`s${round}`, 1));
    await clock.advance(3_000);
  }
  await clock.advance(60_000);
  assert.equal(reflector.list().length, 20);
  assert.equal(api.held().watches, 1);
  assert.equal(reflector.problem, undefined);
  await reflector[Symbol.asyncDispose]();
});

function eventRig(seed: number) {
  const { api, clock, client, random, logger } = createHarness(seed);
  const recorder = new EventRecorder({ client, clock, random, logger, nodeName: 'n1' });
  const tell = (pod: string, reason: string) => {
    const about = podSubject({ metadata: { name: pod, namespace: 'default', uid: `uid-${pod}` } });
    recorder.record({ about, type: 'Normal', reason, message: 'text', at: instant(clock.now()) });
  };
  const told = () => {
    const events = api.objects(apiResources.events) as readonly unknown[] as readonly {
      readonly involvedObject: { readonly name: string };
      readonly reason: string;
      readonly count: number;
    }[];
    return events
      .map(({ involvedObject, reason, count }) => `${involvedObject.name} ${reason} ${count}`)
      .sort();
  };
  return { api, clock, recorder, tell, told };
}

test('sends events with their counts to a real store under random failures', async () => {
  for (let seed = 1; seed <= 15; seed++) {
    const { api, clock, recorder, tell, told } = eventRig(seed);
    const faults = { delay: 0.1, unreachable: 0.1, hang: 0.05, lostAnswer: 0.1 };
    api.setFaults(randomApiFaults({ random: seededRandom(seed), rates: faults }));
    for (let round = 0; round < 60; round++) {
      tell(`p${round % 6}`, ['Pulled', 'Started', 'BackOff'][round % 3] ?? '');
      await clock.advance(1_500);
    }
    api.setFaults(undefined);
    await clock.advance(180_000);
    assert.equal(recorder.queued, 0, `seed ${seed}`);
    const expected = Array.from(
      { length: 6 },
      (_, pod) => `p${pod} ${['Pulled', 'Started', 'BackOff'][pod % 3]} 10`,
    );
    assert.deepEqual(told(), expected, `seed ${seed}`);
    await recorder[Symbol.asyncDispose]();
    api.close();
    assert.equal(clock.pendingTimers, 0, `seed ${seed}`);
  }
});

for (const how of ['refusing', 'silent'] as const) {
  test(`sends events recorded during five minutes without a server (${how}) after its recovery`, async () => {
    const { api, clock, recorder, tell, told } = eventRig(3);
    api.goAway(how);
    for (let round = 0; round < 100; round++) {
      tell(`p${round % 20}`, 'BackOff');
      await clock.advance(3_000);
    }
    assert.ok(recorder.queued <= 28, 'repetitions take no space except during a call');
    api.comeBack();
    await clock.advance(60_000);
    assert.equal(recorder.queued, 0);
    assert.deepEqual(told(), Array.from({ length: 20 }, (_, pod) => `p${pod} BackOff 5`).sort());
    await recorder[Symbol.asyncDispose]();
  });
}
