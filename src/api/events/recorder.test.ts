import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Event } from '../../kinds/index.ts';
import { collectLogs, instant, KubelingError, MetricRegistry, seededRandom } from '../../lib/index.ts';
import type { Pod, PodEvent, PodStep } from '../../pods/index.ts';
import { apiError } from '../client/api-error.ts';
import type { ApiClient, ApiObject, Patch } from '../client/client.ts';
import type { Collection, ObjectRef } from '../client/resource.ts';
import { eventMetrics } from './index.ts';
import { nodeEventRecorder, recordingJournal } from './journal.ts';
import { EventRecorder, type EventRecorderOptions } from './recorder.ts';
import { type EventSubject, nodeSubject, podSubject } from './reference.ts';
import type { EventOutcome } from './sender.ts';

type Call =
  | { readonly is: 'create'; readonly at: Collection; readonly event: Event }
  | { readonly is: 'patch'; readonly ref: ObjectRef; readonly patch: Patch };

/** Fake API that stores events; the function `script` decides which calls fail or never return. */
class ScriptedEvents implements Pick<ApiClient, 'create' | 'patch'> {
  readonly calls: Call[] = [];
  readonly events = new Map<string, Event>();
  inFlight = 0;
  mostInFlight = 0;
  /**
   * The result of a call as decided by the test: an Error rejects it, 'never' leaves it pending,
   * 'lost' performs it but reports a failure.
   */
  script: (call: Call, index: number) => Error | 'never' | 'lost' | 'slow' | undefined = () => undefined;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T> {
    const event = object as Event;
    const name = event.metadata.name ?? '';
    return await this.#do({ is: 'create', at, event }, signal, () => {
      if (this.events.has(name)) throw refusal(409, 'already exists');
      this.events.set(name, event);
      return event as unknown as T;
    });
  }

  async patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T> {
    return await this.#do({ is: 'patch', ref, patch }, signal, () => {
      const event = this.events.get(ref.name);
      if (event === undefined) throw refusal(404, 'not found');
      const changed = { ...event, ...(patch.body as object) };
      this.events.set(ref.name, changed);
      return changed as unknown as T;
    });
  }

  async #do<T>(call: Call, signal: AbortSignal, carryOut: () => T): Promise<T> {
    const index = this.calls.push(call) - 1;
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    try {
      const verdict = this.script(call, index);
      if (verdict instanceof Error) throw verdict;
      if (verdict === 'never') await this.#clock.sleep(10 ** 9, signal);
      if (verdict === 'slow') await this.#clock.sleep(1_000, signal);
      const result = carryOut();
      if (verdict === 'lost') throw unreachable();
      return result;
    } finally {
      this.inFlight--;
    }
  }

  told(): string[] {
    return [...this.events.values()].map(({ reason, message, count }) => `${reason} ${message} x${count}`);
  }
}

function refusal(status: number, message = 'no'): KubelingError {
  return apiError({ what: 'create events', status, apiStatus: { message } });
}

const unreachable = () => new KubelingError('API_UNAVAILABLE', 'Cannot reach the server: connection refused');

function pod(name: string): Pod {
  return {
    metadata: { name, namespace: 'team', uid: `uid-${name}` },
    spec: { containers: [] },
    status: {},
  } as unknown as Pod;
}

function rig(more: Partial<EventRecorderOptions> = {}) {
  const clock = new VirtualClock();
  const server = new ScriptedEvents(clock);
  const logs = collectLogs(clock);
  const outcomes: EventOutcome[] = [];
  const recorder = new EventRecorder({
    client: server,
    clock,
    random: seededRandom(3),
    logger: logs.logger,
    nodeName: 'n1',
    delayMs: 0,
    onOutcome: (outcome) => outcomes.push(outcome),
    ...more,
  });
  const tell = (reason: string, message = 'text', about: EventSubject = podSubject(pod('web'))) =>
    recorder.record({ about, type: 'Normal', reason, message, at: clock.now() });
  const counted = (wanted: EventOutcome) => outcomes.filter((outcome) => outcome === wanted).length;
  const warnings = () =>
    logs.records
      .toArray()
      .filter(({ severity }) => severity !== 'info')
      .map(({ message }) => message);
  return { clock, server, recorder, tell, outcomes, counted, warnings, records: logs.records };
}

const about = (name: string) => podSubject(pod(name));

test('sends an event with the fields that users of the API expect', async () => {
  const { server, recorder, clock } = rig();
  const subject = podSubject(pod('web'), 'spec.initContainers{setup}');
  const at = instant(Date.UTC(2026, 4, 1, 12, 0, 0, 789));
  recorder.record({ about: subject, type: 'Warning', reason: 'BackOff', message: 'Back-off', at });
  await settle();
  const [call] = server.calls;
  assert.ok(call?.is === 'create');
  assert.equal(call.at.namespace, 'team');
  assert.equal(call.at.resource.plural, 'events');
  const { metadata, ...event } = call.event;
  assert.match(metadata.name ?? '', /^web\.[0-9a-f]{16}$/);
  assert.equal(BigInt(`0x${metadata.name?.slice(4)}`) / 1_000_000n, BigInt(at));
  assert.equal(metadata.namespace, 'team');
  assert.deepEqual(JSON.parse(JSON.stringify(event)), {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: {
      kind: 'Pod',
      apiVersion: 'v1',
      namespace: 'team',
      name: 'web',
      uid: 'uid-web',
      fieldPath: 'spec.initContainers{setup}',
    },
    reason: 'BackOff',
    message: 'Back-off',
    source: { component: 'kubelet', host: 'n1' },
    firstTimestamp: '2026-05-01T12:00:00Z',
    lastTimestamp: '2026-05-01T12:00:00Z',
    count: 1,
    type: 'Warning',
    reportingComponent: 'kubelet',
    reportingInstance: 'n1',
  });
  assert.equal(clock.pendingTimers, 0);
});

test('refers to a node by kind and name in the default namespace', async () => {
  const { server, tell } = rig();
  tell('Starting', 'Starting kubelet.', nodeSubject('n1'));
  await settle();
  const [call] = server.calls;
  assert.ok(call?.is === 'create');
  assert.equal(call.at.namespace, 'default');
  assert.deepEqual(call.event.involvedObject, { kind: 'Node', apiVersion: 'v1', name: 'n1' });
});

test('gives simultaneous events unique names, even if the clock is set back', async () => {
  const { server, tell, clock } = rig();
  for (let index = 0; index < 5; index++) tell(`Reason${index}`);
  clock.jumpWall(-3_600_000);
  tell('Later');
  await settle();
  assert.equal(server.events.size, 6);
});

test("omits the object's name from the event's name if it is not a valid name", async () => {
  const { server, tell } = rig();
  tell('One', 'text', nodeSubject('Node_1'));
  tell('Two', 'text', nodeSubject('n'.repeat(250)));
  await settle();
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.equal(server.events.size, 2);
  for (const name of server.events.keys()) assert.match(name, uuid);
});

test('removes control characters from container messages and truncates long ones', async () => {
  const { server, tell } = rig();
  tell('One', '\u001b[31mred\u0007\nnext\tline\ud800');
  tell('Two', 'x'.repeat(10_000));
  await settle();
  const [one, two] = [...server.events.values()];
  assert.equal(one?.message, '[31mred\nnext\tline\ufffd');
  assert.equal(two?.message?.length, 4_096);
});

test('patches count, time and message of a repeated event', async () => {
  const { server, tell, clock } = rig();
  tell('BackOff');
  await clock.advance(5_000);
  tell('BackOff');
  await clock.advance(5_000);
  tell('BackOff');
  await settle();
  assert.deepEqual(
    server.calls.map(({ is }) => is),
    ['create', 'patch', 'patch'],
  );
  const last = server.calls[2];
  assert.ok(last?.is === 'patch');
  assert.deepEqual(last.patch, {
    kind: 'strategic',
    body: { count: 3, lastTimestamp: '2026-01-01T00:00:10Z', message: 'text' },
  });
  assert.equal(last.ref.name, [...server.events.keys()][0]);
  assert.equal(last.ref.namespace, 'team');
  assert.equal([...server.events.values()][0]?.firstTimestamp, '2026-01-01T00:00:00Z');
});

test('creates a repeated event again, with its count, after the server deleted it', async () => {
  const { server, tell } = rig();
  tell('BackOff');
  await settle();
  server.events.clear();
  tell('BackOff');
  await settle();
  assert.deepEqual(
    server.calls.map(({ is }) => is),
    ['create', 'patch', 'create'],
  );
  assert.deepEqual(server.told(), ['BackOff text x2']);
});

test('sends separate events if the container, object, type or message differs', async () => {
  const { server, recorder, tell, clock } = rig();
  tell('Failed', 'a');
  tell('Failed', 'b');
  tell('Failed', 'a', about('other'));
  tell('Failed', 'a', podSubject(pod('web'), 'spec.containers{x}'));
  recorder.record({ about: about('web'), type: 'Warning', reason: 'Failed', message: 'a', at: clock.now() });
  await settle();
  assert.equal(server.events.size, 5);
});

test('combines events that differ only in their message, from the tenth within ten minutes', async () => {
  const { server, tell, clock } = rig();
  for (let index = 1; index <= 12; index++) {
    tell('Unhealthy', `probe ${index}`);
    await clock.advance(1_000);
  }
  assert.equal(server.events.size, 10);
  assert.equal(server.told().at(-1), 'Unhealthy (combined from similar events): probe 12 x3');
  assert.equal(server.calls.filter(({ is }) => is === 'patch').length, 2);
  tell('Other', 'one more');
  await settle();
  assert.equal(server.told().at(-1), 'Other one more x1');
});

test('sends different messages as separate events again after ten minutes without events', async () => {
  const { server, tell, clock } = rig();
  for (let index = 1; index <= 10; index++) tell('Unhealthy', `probe ${index}`);
  await clock.advance(600_001);
  tell('Unhealthy', 'probe 11');
  await settle();
  assert.equal(server.told().at(-1), 'Unhealthy probe 11 x1');
});

test('sends 25 events of one reason and then one every five minutes, whose count includes the events that were not sent', async () => {
  const { server, tell, clock, counted } = rig();
  for (let index = 0; index < 40; index++) {
    tell('BackOff');
    await settle();
  }
  assert.equal(server.calls.length, 25);
  assert.equal(counted('spam'), 15);
  assert.deepEqual(server.told(), ['BackOff text x25']);
  await clock.advance(300_000);
  tell('BackOff');
  tell('BackOff');
  await settle();
  assert.equal(server.calls.length, 26);
  assert.deepEqual(server.told(), ['BackOff text x41']);
});

test('does not apply the rate limit of one reason to other reasons, or to the same reason of another object', async () => {
  const { server, tell } = rig();
  for (let index = 0; index < 40; index++) tell('BackOff');
  tell('Started');
  tell('BackOff', 'text', about('other'));
  await settle();
  assert.deepEqual(server.told().slice(1).sort(), ['BackOff text x1', 'Started text x1']);
});

test('creates a new event instead of counting, if the correlator has dropped the earlier one as least recently used', async () => {
  const { server, tell, clock } = rig({ queueCapacity: 10_000 });
  tell('One', 'text', about('first'));
  for (let index = 0; index < 4_096; index++) tell('One', 'text', about(`p${index}`));
  await clock.advance(1_000);
  tell('One', 'text', about('first'));
  await settle();
  assert.equal(server.calls.at(-1)?.is, 'create');
});

test('drops and counts events beyond a thousand queued ones without blocking', async () => {
  const { server, tell, recorder, counted, warnings } = rig();
  server.script = () => 'never';
  for (let index = 0; index < 1_010; index++) tell('One', 'text', about(`p${index}`));
  assert.equal(recorder.queued, 1_000);
  assert.equal(counted('queue-full'), 10);
  assert.deepEqual(warnings(), ['Dropped event, queue is full']);
  tell('One', 'text', about('p999'));
  assert.equal(counted('queue-full'), 10, 'a repetition of a queued event takes no space');
  await recorder[Symbol.asyncDispose]();
});

test('combines repetitions of a queued event into one call with the latest count', async () => {
  const { server, tell, recorder, clock } = rig();
  server.script = (_, index) => (index === 0 ? 'slow' : undefined);
  for (let index = 0; index < 20; index++) tell('BackOff');
  assert.equal(recorder.queued, 2);
  await clock.advance(1_000);
  assert.deepEqual(
    server.calls.map(({ is }) => is),
    ['create', 'patch'],
  );
  assert.deepEqual(server.told(), ['BackOff text x20']);
});

test('sends eight events concurrently, and those of one object serially', async () => {
  const { server, tell, clock } = rig();
  server.script = () => 'slow';
  for (let index = 0; index < 20; index++) tell('One', 'text', about(`p${index}`));
  await settle();
  assert.equal(server.inFlight, 8);
  await clock.advance(3_000);
  assert.equal(server.events.size, 20);
  server.mostInFlight = 0;
  for (const reason of ['Pulled', 'Created', 'Started']) tell(reason);
  await clock.advance(3_000);
  assert.equal(server.mostInFlight, 1);
  assert.deepEqual(server.told().slice(20), ['Pulled text x1', 'Created text x1', 'Started text x1']);
});

test('blocks only events of the same object while a call is pending', async () => {
  const { server, tell, clock } = rig();
  const isStuck = (call: Call) => call.is === 'create' && call.event.reason === 'Stuck';
  server.script = (call) => (isStuck(call) ? 'never' : undefined);
  for (let index = 0; index < 12; index++) tell('Stuck', 'text', about(`s${index}`));
  tell('After', 'text', about('s0'));
  tell('Free', 'text', about('free'));
  await clock.advance(60_000);
  assert.deepEqual(server.told(), ['Free text x1']);
  server.script = () => undefined;
  await clock.advance(120_000);
  assert.equal(server.events.size, 14);
  const reasons = server.calls.flatMap((call) =>
    call.is === 'create' ? [`${call.event.involvedObject.name} ${call.event.reason}`] : [],
  );
  assert.ok(reasons.lastIndexOf('s0 Stuck') < reasons.indexOf('s0 After'));
});

test('tries twelve times about ten seconds apart, then drops the event', async () => {
  const { server, tell, clock, counted, recorder } = rig();
  const times: number[] = [];
  server.script = (call) => {
    if (call.is === 'create' && call.event.reason !== 'Cut') return undefined;
    times.push(clock.monotonicMs());
    return new KubelingError('API_BAD_ANSWER', 'not a response of an API server');
  };
  tell('Cut');
  tell('After');
  await clock.advance(300_000);
  assert.equal(times.length, 12);
  const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  assert.ok((waits[0] ?? 0) < 10_000, 'the first delay is randomized');
  for (const wait of waits.slice(1)) assert.ok(wait >= 10_000 && wait <= 11_000, `${wait}`);
  assert.equal(counted('gave-up'), 1);
  assert.deepEqual(server.told(), ['After text x1']);
  assert.equal(recorder.queued, 0);
});

test('drops an event whose requests always break the connection, while other events are sent', async () => {
  const { server, tell, clock, counted } = rig();
  server.script = (call) => (call.is === 'create' && call.event.reason === 'Cut' ? unreachable() : undefined);
  tell('Cut');
  for (let second = 0; second < 200; second++) {
    tell('Fine', `text ${second}`, about(`p${second}`));
    await clock.advance(1_000);
  }
  assert.equal(counted('gave-up'), 1);
  assert.equal(counted('sent'), 200);
});

test('while the server is unreachable, probes it with one event at growing intervals and drops no event', async () => {
  const { server, tell, clock, recorder, counted, warnings } = rig();
  server.script = unreachable;
  for (let index = 0; index < 50; index++) tell('One', 'text', about(`p${index}`));
  await clock.advance(1_000);
  const early = server.calls.length;
  await clock.advance(300_000);
  assert.ok(early <= 9, `${early} at the start`);
  assert.ok(server.calls.length - early < 45, `${server.calls.length - early} in five minutes`);
  assert.equal(recorder.queued, 50);
  assert.deepEqual(warnings(), ['Failed to send event, retrying']);
  server.script = () => undefined;
  await clock.advance(30_000);
  assert.equal(recorder.queued, 0);
  assert.equal(server.events.size, 50);
  assert.equal(counted('sent'), 50);
  assert.equal(clock.pendingTimers, 0);
});

for (const status of [429, 503]) {
  test(`retries an event when the server responds ${status}`, async () => {
    const { server, tell, clock } = rig();
    server.script = (_, index) => (index < 3 ? refusal(status) : undefined);
    tell('One');
    await clock.advance(60_000);
    assert.deepEqual(server.told(), ['One text x1']);
  });
}

test('drops and logs an event that the server rejects, and sends the next one', async () => {
  const { server, tell, counted, warnings } = rig();
  server.script = (_, index) => (index === 0 ? refusal(422, 'bad event') : undefined);
  tell('Bad');
  tell('Good');
  await settle();
  assert.deepEqual(server.told(), ['Good text x1']);
  assert.equal(counted('refused'), 1);
  assert.deepEqual(warnings(), ['API server rejected event']);
});

test('does not warn about events that are rejected because their namespace is terminating or the event exists', async () => {
  const { server, tell, counted, warnings } = rig();
  const terminating = 'unable to create new content in namespace team because it is being terminated';
  server.script = (_, index) => [refusal(403, terminating), refusal(409, 'already exists')][index];
  tell('One');
  tell('Two');
  await settle();
  assert.equal(counted('refused'), 2);
  assert.deepEqual(warnings(), []);
  server.script = () => refusal(403, 'not allowed');
  tell('Three');
  await settle();
  assert.equal(warnings().length, 1);
});

test('does not create an event twice if the first creation got no response, and patches the count of the created event later', async () => {
  const { server, tell, clock, counted } = rig();
  server.script = (_, index) => (index === 0 ? 'lost' : undefined);
  tell('BackOff');
  await settle();
  tell('BackOff');
  await clock.advance(20_000);
  assert.deepEqual(
    server.calls.map(({ is }) => is),
    ['create', 'create', 'patch'],
  );
  assert.deepEqual(server.told(), ['BackOff text x2']);
  assert.equal(counted('sent'), 1);
});

test('waits when stopped until all events are sent or the deadline passes', async () => {
  const { server, tell, clock, recorder } = rig();
  await recorder.drained(new AbortController().signal);
  server.script = () => 'slow';
  tell('One');
  const patience = new AbortController();
  const impatient = recorder.drained(patience.signal);
  patience.abort(new KubelingError('CANCELLED', 'enough'));
  await assert.rejects(impatient, /enough/);
  let done = false;
  const drained = recorder.drained(new AbortController().signal).then(() => {
    done = true;
  });
  await clock.advance(999);
  assert.equal(done, false);
  await clock.advance(1);
  await drained;
});

test('drops queued and pending events when disposed, and leaves no timers or connections behind', async () => {
  const { server, tell, clock, recorder, counted } = rig();
  server.script = (call) => (call.is === 'create' && call.event.reason === 'Cut' ? unreachable() : 'never');
  tell('Cut', 'text', about('other'));
  tell('One');
  tell('Two');
  await settle();
  await recorder[Symbol.asyncDispose]();
  assert.equal(clock.pendingTimers, 0);
  assert.equal(server.inFlight, 0);
  tell('Late');
  assert.equal(counted('closed'), 4);
  assert.equal(recorder.queued, 0);
});

test('logs an invalid event instead of throwing', () => {
  const { recorder, warnings, clock } = rig();
  const broken = { type: 'Normal', reason: 'One', message: undefined, about: about('web'), at: clock.now() };
  recorder.record(broken as unknown as Parameters<EventRecorder['record']>[0]);
  assert.deepEqual(warnings(), ['Failed to record event']);
});

test('counts the outcomes of events', async () => {
  const registry = new MetricRegistry({ onError: () => assert.fail('No collector is there') });
  const { tell } = rig({ onOutcome: eventMetrics(registry) });
  tell('One');
  await settle();
  const text = await registry.expose(new AbortController().signal);
  assert.match(text, /kubeling_events_total\{outcome="sent"\} 1/);
  assert.match(text, /kubeling_events_total\{outcome="queue-full"\} 0/);
});

test('sends the events recorded in pod and node journals to the API, and also passes them on to the journals', async () => {
  const { recorder, server, clock } = rig();
  const kept: string[] = [];
  const inner = {
    event: (_: Pod, event: PodEvent) => void kept.push(event.reason),
    step: (_: string, step: PodStep) => void kept.push(step.stage),
  };
  const journal = recordingJournal(inner, recorder, clock);
  const web = pod('web');
  journal.event(web, {
    type: 'Normal',
    reason: 'Started',
    message: 'Started',
    fieldPath: 'spec.containers{a}',
  });
  journal.step(web.metadata.uid, { stage: 'ready', outcome: 'done', message: 'ready' });
  nodeEventRecorder('n1', recorder, clock)({ type: 'Normal', reason: 'NodeReady', message: 'ready' });
  await settle();
  assert.deepEqual(kept, ['Started', 'ready']);
  const subjects = [...server.events.values()].map(({ involvedObject }) => [
    involvedObject.kind,
    involvedObject.fieldPath,
  ]);
  assert.deepEqual(subjects, [
    ['Pod', 'spec.containers{a}'],
    ['Node', undefined],
  ]);
});

test('delays a normal event for half a second, so that the events of a pod start are sent together', async () => {
  const { clock, server, recorder, tell } = rig({ delayMs: 500 });
  tell('Pulled');
  tell('Created');
  await clock.advance(499);
  assert.equal(server.calls.length, 0);
  tell('Started');
  await clock.advance(1);
  assert.deepEqual(server.told(), ['Pulled text x1', 'Created text x1', 'Started text x1']);
  await recorder[Symbol.asyncDispose]();
  assert.equal(clock.pendingTimers, 0);
});

test('sends a warning immediately, after the queued events of its object', async () => {
  const { server, recorder, tell } = rig({ delayMs: 500 });
  tell('Pulled');
  recorder.record({ about: about('web'), type: 'Warning', reason: 'Failed', message: 'no', at: instant(0) });
  await settle();
  assert.deepEqual(server.told(), ['Pulled text x1', 'Failed no x1']);
});

test('sends delayed events immediately when stopped', async () => {
  const { server, recorder, tell } = rig({ delayMs: 500 });
  tell('Killing');
  await recorder.drained(new AbortController().signal);
  assert.deepEqual(server.told(), ['Killing text x1']);
});
