import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCriClient } from '../../src/cri/index.ts';
import { isKind, seededRandom } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { SimulatedNode } from '../fakes/simulated-node.ts';
import { type CallRule, type FaultPlan, randomFaults, scriptedFaults } from './faults.ts';

const says = (code: string) => (error: unknown) => error instanceof GrpcError && error.grpcCode === code;

const faulty = (...calls: readonly CallRule[]) => new SimulatedNode({ faults: scriptedFaults({ calls }) });

test('a delayed runtime call takes effect later', async () => {
  using node = faulty({ method: 'runPodSandbox', fault: { kind: 'delay', ms: 30_000 } });
  const call = node.cri.runPodSandbox({ config: node.podConfig() }, node.options);
  await node.clock.advance(29_000);
  assert.equal(node.runtime.sandboxes().length, 0);
  await node.done(call);
  assert.equal(node.runtime.sandboxes().length, 1);
});

test('a rejected runtime call has no effect', async () => {
  const fault = { kind: 'error', code: 'RESOURCE_EXHAUSTED', message: 'no' } as const;
  using node = faulty({ method: 'runPodSandbox', nth: 1, fault });
  await assert.rejects(node.sandbox(), says('RESOURCE_EXHAUSTED'));
  assert.equal(node.runtime.held().names, 0);
  await node.sandbox();
});

test('a hanging runtime call ends when its caller aborts, without effect', async () => {
  using node = faulty({ method: 'runPodSandbox', fault: { kind: 'hang' } });
  const cri = createCriClient({ clock: node.clock, transport: node.transport, requestTimeoutMs: 1_000 });
  const call = cri.runPodSandbox({ config: node.podConfig() }, node.options.signal);
  await assert.rejects(node.done(call), (error) => isKind(error, 'DeadlineExceeded'));
  assert.ok(node.clock.monotonicMs() >= 2_000);
  assert.deepEqual([node.runtime.held().calls, node.runtime.sandboxes().length], [0, 0]);
});

test('the effect of a call remains when its response is lost', async () => {
  using node = faulty(
    { method: 'runPodSandbox', nth: 1, fault: { kind: 'lost-reply', code: 'UNAVAILABLE' } },
    { method: 'runPodSandbox', nth: 2, fault: { kind: 'lost-reply', code: 'DEADLINE_EXCEEDED' } },
    { method: 'runPodSandbox', nth: 3, fault: { kind: 'lost-reply', code: 'none' } },
  );
  await assert.rejects(node.sandbox(node.podConfig('a')), says('UNAVAILABLE'));
  await assert.rejects(node.sandbox(node.podConfig('b')), says('DEADLINE_EXCEEDED'));
  const controller = new AbortController();
  const third = node.cri.runPodSandbox({ config: node.podConfig('c') }, { signal: controller.signal });
  const ended = assert.rejects(third, says('CANCELLED'));
  await node.clock.advance(60_000);
  controller.abort(new Error('enough'));
  await ended;
  assert.equal(node.runtime.sandboxes().filter(({ running }) => running).length, 3);
});

test('a call with a late effect returns its error before the effect', async () => {
  const fault = { kind: 'late-effect', ms: 10_000, code: 'DEADLINE_EXCEEDED' } as const;
  using node = faulty({ method: 'startContainer', fault });
  const containerId = await node.create(await node.sandbox());
  await assert.rejects(node.start(containerId), says('DEADLINE_EXCEEDED'));
  await node.clock.advance(5_000);
  assert.equal(node.runtime.runningContainers().length, 0);
  await node.clock.advance(6_000);
  assert.equal(node.runtime.runningContainers().length, 1);
});

test('fault rules match method, count and request', async () => {
  const fault = { kind: 'error', code: 'UNKNOWN', message: 'no' } as const;
  using node = faulty(
    { method: 'containerStatus', times: 2, fault },
    { method: '*', nth: 1, matches: (request) => 'podSandboxId' in (request as object), fault },
  );
  await assert.rejects(node.sandboxStatus('x'), says('UNKNOWN'));
  await assert.rejects(node.sandboxStatus('x'), says('NOT_FOUND'));
  for (let i = 0; i < 2; i++) await assert.rejects(node.status('x'), says('UNKNOWN'));
  await assert.rejects(node.status('x'), says('NOT_FOUND'));
  const faults = node.runtime.trace.entries().filter(({ kind }) => kind === 'call-fault');
  assert.equal(faults.length, 3);
});

test('faults can be removed', async () => {
  using node = faulty({ method: '*', fault: { kind: 'error', code: 'UNAVAILABLE', message: 'no' } });
  await assert.rejects(node.sandbox());
  node.runtime.setFaults(undefined);
  await node.sandbox();
});

test('an event stream can fail before it begins', async () => {
  using node = faulty({ method: 'subscribe', fault: { kind: 'error', code: 'UNAVAILABLE', message: 'no' } });
  const read = async () => {
    for await (const _ of node.transport.containerdEvents.subscribe({}, node.options));
  };
  await assert.rejects(node.done(read()), says('UNAVAILABLE'));
});

test('a call aborted in flight may or may not take effect', async () => {
  const outcomes = new Set<number>();
  for (let seed = 0; seed < 20; seed++) {
    using node = new SimulatedNode({ seed, latency: () => 5 });
    const controller = new AbortController();
    const call = node.cri.runPodSandbox({ config: node.podConfig() }, { signal: controller.signal });
    const ended = assert.rejects(call, says('CANCELLED'));
    await node.clock.advance(1);
    controller.abort(new Error('the caller aborted the call'));
    await ended;
    await node.clock.advance(1_000);
    outcomes.add(node.runtime.sandboxes().length);
  }
  assert.deepEqual([...outcomes].sort(), [0, 1]);
});

test('a call aborted while the runtime executes it is undone', async () => {
  using node = new SimulatedNode({ latency: (step) => (step === 'sandbox-start' ? 100 : 1) });
  const controller = new AbortController();
  const call = node.cri.runPodSandbox({ config: node.podConfig() }, { signal: controller.signal });
  const ended = assert.rejects(call, says('CANCELLED'));
  await node.clock.advance(50);
  assert.equal(node.runtime.held().sandboxes, 1);
  controller.abort(new Error('the caller aborted the call'));
  await ended;
  await node.clock.advance(100);
  const { sandboxes, names, addresses } = node.runtime.held();
  assert.deepEqual([sandboxes, names, addresses], [0, 0, 0]);
});

function tally(plan: FaultPlan, calls: number): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (kind: string | undefined) =>
    kind !== undefined && counts.set(kind, (counts.get(kind) ?? 0) + 1);
  for (let i = 0; i < calls; i++) {
    count(plan.call('status', {})?.kind);
    count(plan.event({ stream: 'cri', topic: 'x', containerId: '' })?.kind);
  }
  return counts;
}

test('random faults occur about as often as configured, and identically for the same seed', () => {
  const rates = {
    delay: 0.1,
    error: 0.05,
    hang: 0.02,
    lostReply: 0.05,
    lateEffect: 0.05,
    eventDropped: 0.1,
    streamCut: 0.01,
  };
  const counts = tally(randomFaults({ random: seededRandom(5), rates }), 10_000);
  const about = (kind: string, share: number) => {
    const seen = (counts.get(kind) ?? 0) / 10_000;
    assert.ok(Math.abs(seen - share) < share / 3, `${kind} occurred ${seen}, expected ${share}`);
  };
  for (const [kind, share] of [
    ['delay', 0.1],
    ['error', 0.05],
    ['hang', 0.02],
    ['lost-reply', 0.05],
    ['late-effect', 0.05],
    ['drop', 0.1],
    ['cut', 0.01],
  ] as const) {
    about(kind, share);
  }
  assert.deepEqual(tally(randomFaults({ random: seededRandom(5), rates }), 10_000), counts);
  const spared = randomFaults({ random: seededRandom(5), rates: { error: 1 }, except: ['version'] });
  assert.equal(spared.call('version', {}), undefined);
  assert.equal(spared.call('status', {})?.kind, 'error');
});
