import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiObject, isApiCode } from '../../../src/api/index.ts';
import { type ErrorCode, isKind, KubelingError, seededRandom } from '../../../src/lib/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';
import { adminUser, nodeUser } from '../../fakes/api-users.ts';
import { type ApiFault, conflictFault, randomApiFaults, scriptedApiFaults } from './faults.ts';

const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);
const running = { kind: 'merge', body: { status: { phase: 'Running' } } } as const;

function faulty(fault: ApiFault, nth = 1) {
  const calls = [{ verb: 'patch', target: 'pods/status', nth, fault }] as const;
  const harness = new ApiRig({ faults: scriptedApiFaults({ calls }) });
  harness.pod('a');
  const patch = () => harness.node.patch(podRef('a', 'status'), running, harness.signal);
  const phase = () => harness.api.object(podRef('a'))?.status?.['phase'];
  return { rig: harness, patch, phase };
}

test("a rejected call has no effect, and its error has all fields of a server's error", async () => {
  const { rig, patch, phase } = faulty({
    kind: 'refuse',
    status: 429,
    reason: 'TooManyRequests',
    retryAfterMs: 1_000,
  });
  await assert.rejects(rig.done(patch()), (error) => {
    assert.ok(error instanceof KubelingError && error.code === 'API_TOO_MANY');
    assert.deepEqual(error.details, { status: 429, reason: 'TooManyRequests', retryAfterMs: 1_000 });
    return true;
  });
  assert.equal(phase(), 'Pending');
  await rig.done(patch());
  assert.equal(phase(), 'Running');
  assert.deepEqual(rig.api.faultsStruck(), { refuse: 1 });
});

test('a conflict can be injected', async () => {
  const { rig, patch } = faulty(conflictFault);
  await assert.rejects(rig.done(patch()), says('API_CONFLICT'));
});

test('a call to an unreachable server has no effect', async () => {
  const { rig, patch, phase } = faulty({ kind: 'unreachable' });
  await assert.rejects(rig.done(patch()), says('API_UNAVAILABLE'));
  assert.equal(phase(), 'Pending');
});

test('a call may time out before or after its effect', async () => {
  const before = faulty({ kind: 'hang' });
  await assert.rejects(before.rig.done(before.patch()), says('API_DEADLINE'));
  assert.ok(before.rig.clock.monotonicMs() >= 30_000);
  assert.equal(before.phase(), 'Pending');
  const after = faulty({ kind: 'lost-answer', how: 'silence' });
  await assert.rejects(after.rig.done(after.patch()), says('API_DEADLINE'));
  assert.equal(after.phase(), 'Running');
  const cut = faulty({ kind: 'lost-answer', how: 'cut' });
  await assert.rejects(cut.rig.done(cut.patch()), says('API_UNAVAILABLE'));
  assert.equal(cut.phase(), 'Running');
  for (const { rig } of [before, after, cut]) assert.equal(rig.clock.pendingTimers, 0);
});

test('a call may take effect after its error was returned', async () => {
  const { rig, patch, phase } = faulty({ kind: 'late-effect', ms: 10_000 });
  await assert.rejects(rig.done(patch()), says('API_UNAVAILABLE'));
  assert.equal(phase(), 'Pending');
  await rig.clock.advance(10_000);
  assert.equal(phase(), 'Running');
});

test("a slow response arrives unless the caller's deadline is shorter", async () => {
  const { rig, patch, phase } = faulty({ kind: 'delay', ms: 2_000 });
  await rig.done(patch());
  assert.ok(rig.clock.monotonicMs() >= 2_000);
  assert.equal(phase(), 'Running');
  const slow = scriptedApiFaults({
    calls: [{ verb: 'get', target: '*', fault: { kind: 'delay', ms: 11_000 } }],
  });
  rig.api.setFaults(slow);
  const hasty = rig.api.client(nodeUser('n1'), { deadlineMs: 10_000 });
  await assert.rejects(rig.done(hasty.get(podRef('a'), {}, rig.signal)), says('API_DEADLINE'));
  rig.api.setFaults(undefined);
  await rig.get(podRef('a'));
});

test('a list may fail with 410', async () => {
  const faults = scriptedApiFaults({
    calls: [
      { verb: 'list', target: 'pods', times: 1, fault: { kind: 'refuse', status: 410, reason: 'Expired' } },
    ],
  });
  using harness = new ApiRig({ faults });
  await assert.rejects(
    harness.done(harness.admin.list({ resource: pods }, harness.signal)),
    says('API_GONE'),
  );
  await harness.done(harness.admin.list({ resource: pods }, harness.signal));
});

test('a server that is down refuses connections, ends watches, and restarts with all its objects', async () => {
  using harness = new ApiRig({ latencyMs: () => 5 });
  harness.pod('a');
  const watched = harness.watch(harness.admin, { resource: pods });
  await harness.clock.advance(100);
  const underway = harness.node.patch(podRef('a', 'status'), running, harness.signal);
  const ended = assert.rejects(underway, says('API_UNAVAILABLE'));
  await harness.clock.advance(2);
  harness.api.goAway();
  await ended;
  await harness.clock.advance(100);
  assert.ok(isApiCode(watched.end, 'API_UNAVAILABLE'));
  assert.equal(harness.api.object(podRef('a'))?.status?.['phase'], 'Pending');
  await assert.rejects(harness.get(podRef('a')), says('API_UNAVAILABLE'));
  harness.api.comeBack();
  assert.equal((await harness.get(podRef('a'))).metadata.name, 'a');
});

test('when the network drops all packets, calls end at their deadline and watches end later', async () => {
  using harness = new ApiRig();
  const watched = harness.watch(harness.admin, { resource: pods });
  await harness.clock.advance(100);
  harness.api.goAway('silent');
  harness.pod('a');
  await assert.rejects(harness.get(podRef('a')), says('API_DEADLINE'));
  assert.deepEqual([watched.events.length, watched.end], [1, undefined]);
  await harness.clock.advance(20_000);
  assert.ok(isApiCode(watched.end, 'API_UNAVAILABLE'));
  harness.api.comeBack();
  await harness.get(podRef('a'));
});

test('a call aborted in flight may or may not take effect', async () => {
  const outcomes = new Set<unknown>();
  for (let seed = 0; seed < 20; seed++) {
    using harness = new ApiRig({ seed, latencyMs: () => 5 });
    harness.pod('a');
    const controller = new AbortController();
    const call = harness.node.patch(podRef('a', 'status'), running, controller.signal);
    const ended = assert.rejects(call, /enough/);
    await harness.clock.advance(1);
    controller.abort(new Error('enough'));
    await ended;
    await harness.clock.advance(1_000);
    outcomes.add(harness.api.object(podRef('a'))?.status?.['phase']);
  }
  assert.deepEqual([...outcomes].sort(), ['Pending', 'Running']);
});

test('a call whose signal is already aborted is not sent', async () => {
  using harness = new ApiRig();
  await assert.rejects(harness.node.get(podRef('a'), {}, AbortSignal.abort(new Error('no'))), /no/);
  assert.equal(harness.api.calls.of(), 0);
});

test('random faults occur about as often as configured, and identically for the same seed', () => {
  const rates = {
    delay: 0.1,
    refuse: 0.1,
    conflict: 0.1,
    hang: 0.05,
    lostAnswer: 0.05,
    watchCut: 0.1,
    eventLate: 0.1,
  };
  const tally = (seed: number) => {
    const plan = randomApiFaults({
      random: seededRandom(seed),
      rates,
      spares: ({ verb }) => verb === 'delete',
    });
    const counts: Record<string, number> = {};
    const count = (kind = 'none') => {
      counts[kind] = (counts[kind] ?? 0) + 1;
    };
    const request = { user: adminUser, resource: pods };
    for (let i = 0; i < 5_000; i++) {
      count(plan.call({ ...request, verb: 'patch' })?.kind);
      const get = plan.call({ ...request, verb: 'get' });
      assert.notEqual(get, conflictFault);
      assert.equal(plan.call({ ...request, verb: 'delete' }), undefined);
      count(`event-${plan.event({ type: 'ADDED', resource: 'pods', name: 'a', user: 'u' })?.kind}`);
    }
    return counts;
  };
  const counts = tally(5);
  const about = (kind: string, share: number) => {
    const seen = (counts[kind] ?? 0) / 5_000;
    assert.ok(Math.abs(seen - share) < share / 3, `${kind} occurred ${seen}, expected ${share}`);
  };
  for (const [kind, share] of [
    ['delay', 0.1],
    ['refuse', 0.2],
    ['hang', 0.05],
    ['event-cut', 0.1],
  ] as const)
    about(kind, share);
  assert.deepEqual(tally(5), counts);
});

test('the same seed gives the same history of faults', async () => {
  const history = async (seed: number) => {
    const random = seededRandom(seed + 1);
    const rates = {
      delay: 0.2,
      refuse: 0.2,
      lostAnswer: 0.2,
      lateEffect: 0.2,
      eventLate: 0.2,
      watchCut: 0.1,
    };
    using harness = new ApiRig({ seed, faults: randomApiFaults({ random, rates }) });
    const story: string[] = [];
    harness.api.onChange(({ type, version }) =>
      story.push(`${harness.clock.monotonicMs()} ${type} ${version}`),
    );
    const watched = harness.watch(harness.admin, { resource: pods });
    for (let i = 0; i < 20; i++) {
      const object = { metadata: { generateName: 'p-' } } as ApiObject;
      const call = harness.admin.create({ resource: pods, namespace: 'default' }, object, harness.signal);
      await harness.done(call).catch((error) => {
        assert.ok(isKind(error, 'Failed', 'Unavailable', 'DeadlineExceeded'), String(error));
        story.push(`${harness.clock.monotonicMs()} ${error.code}`);
      });
    }
    return [story, watched.events.map(({ object }) => object.metadata?.name)];
  };
  assert.deepEqual(await history(3), await history(3));
  assert.notDeepEqual(await history(3), await history(4));
});
