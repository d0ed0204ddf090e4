import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProbeRig } from '../../test/fakes/probe-rig.ts';
import type { Container, Probe } from '../kinds/index.ts';

const http: Probe = { httpGet: { port: 80 }, periodSeconds: 10 };
const readiness = (more: Probe = {}): Partial<Container> => ({ readinessProbe: { ...http, ...more } });
const liveness = (more: Probe = {}): Partial<Container> => ({ livenessProbe: { ...http, ...more } });
const startup = (more: Probe = {}): Partial<Container> => ({ startupProbe: { ...http, ...more } });
const fails = () => ({ is: 'failure' as const, output: 'no' });

async function rigOf(
  container: Partial<Container>,
  id?: string,
  answer: ProbeRig['answer'] = () => ({ is: 'success' }),
): Promise<ProbeRig> {
  const rig = new ProbeRig({ container });
  rig.answer = answer;
  await rig.begin(id);
  return rig;
}

describe('before the first probe', () => {
  for (const [type, container, initial] of [
    ['readiness', readiness(), 'failure'],
    ['liveness', liveness(), 'success'],
    ['startup', startup(), 'unknown'],
  ] as const) {
    it(`the ${type} result is ${initial}`, async () => {
      await using rig = await rigOf({
        ...container,
        [`${type}Probe`]: { ...http, initialDelaySeconds: 30 },
      });
      assert.equal(rig.result(type, 'a'), undefined);
      rig.runs('a');
      await rig.pass(10_000);
      assert.equal(rig.result(type, 'a'), initial);
      assert.deepEqual([rig.asked, rig.changes], [[], []]);
    });
  }

  it('there is no result for a container that started long before the kubelet: its published status counts', async () => {
    const rig = new ProbeRig({ container: { ...readiness(), ...liveness(), ...startup() }, uptimeMs: 0 });
    await using _end = rig;
    rig.runs('a', { startedMsAgo: 11_000, started: false, ready: false });
    rig.answer = () => ({ is: 'error' });
    await rig.begin();
    await rig.pass(15_000);
    for (const type of ['readiness', 'liveness', 'startup'] as const)
      assert.equal(rig.result(type, 'a'), undefined);
  });

  it('the result is the published one of the same instance, even a recently started one', async () => {
    const rig = new ProbeRig({
      container: { ...readiness({ initialDelaySeconds: 99 }), ...startup() },
      uptimeMs: 0,
    });
    await using _end = rig;
    rig.runs('a', { startedMsAgo: 2_000, started: true, ready: true });
    await rig.begin();
    await rig.pass(10_000);
    assert.deepEqual([rig.result('readiness', 'a'), rig.result('startup', 'a')], ['success', 'success']);
    assert.deepEqual([rig.asked, rig.changes], [[], []]);
  });
});

describe('a container', () => {
  it('is probed once per period, by default every ten seconds', async () => {
    await using rig = await rigOf({ livenessProbe: { httpGet: { port: 80 } } }, 'a');
    await rig.pass(25_000);
    assert.deepEqual(rig.askedAt, [0, 10_000, 20_000]);
    assert.equal(rig.asked[0]?.timeoutMs, 1_000);
  });

  it('is not probed before its initial delay, in whole seconds since its start', async () => {
    await using rig = await rigOf(liveness({ periodSeconds: 1, initialDelaySeconds: 5 }), 'a');
    await rig.pass(6_500);
    assert.deepEqual(rig.askedAt, [5_000, 6_000]);
  });

  it('is probed in time when the wall clock is set back', async () => {
    await using rig = await rigOf(liveness({ periodSeconds: 1, initialDelaySeconds: 2 }), 'a');
    rig.clock.jumpWall(-3_600_000);
    await rig.pass(2_500);
    assert.deepEqual(rig.askedAt, [2_000]);
  });

  it("is first probed at a random time in the first period after the kubelet's start", async () => {
    const rig = new ProbeRig({ container: liveness(), uptimeMs: 0, random: { next: () => 0.37 } });
    await using _end = rig;
    rig.runs('a');
    await rig.begin();
    await rig.pass(14_000);
    assert.deepEqual(rig.askedAt, [3_700, 13_700]);
  });

  it('is not probed while the previous probe runs', async () => {
    const slow = () => ({ is: 'success', afterMs: 2_500 }) as const;
    await using rig = await rigOf(liveness({ periodSeconds: 1, timeoutSeconds: 5 }), 'a', slow);
    await rig.pass(6_000);
    assert.deepEqual(rig.askedAt, [0, 2_500, 5_000]);
  });

  it('is not probed without a status or an instance', async () => {
    await using rig = await rigOf(liveness());
    await rig.pass(10_000);
    rig.status = { phase: 'Pending', containerStatuses: [] };
    await rig.pass(10_000);
    assert.deepEqual(rig.asked, []);
    rig.runs('a');
    await rig.pass(10_000);
    assert.deepEqual(rig.askedAt, [30_000]);
  });

  it('is not probed after its pod ended', async () => {
    await using rig = await rigOf(liveness(), 'a');
    for (const phase of ['Succeeded', 'Failed']) rig.is('a', {}, phase);
    await rig.pass(30_000);
    assert.deepEqual(rig.askedAt, [0]);
    assert.deepEqual(rig.manager.held(), { pods: 1, workers: 0, results: 0 });
  });

  it('is probed for readiness immediately after its start', async () => {
    await using rig = await rigOf(readiness());
    await rig.pass(2_000);
    rig.runs('a');
    rig.manager.trigger(rig.uid, rig.status ?? {});
    await rig.pass(0);
    assert.deepEqual(rig.askedAt, [2_000]);
    rig.manager.trigger(rig.uid, rig.status ?? {});
    await rig.pass(10_000);
    assert.deepEqual(rig.askedAt, [2_000, 12_000]);
  });

  it('is not probed early before its start, or when it is older than the kubelet', async () => {
    const rig = new ProbeRig({ container: readiness(), uptimeMs: 0, random: { next: () => 0.9 } });
    await using _end = rig;
    rig.runs('a', { started: false });
    await rig.begin();
    rig.manager.trigger(rig.uid, rig.status ?? {});
    await rig.pass(1_000);
    assert.deepEqual(rig.askedAt, []);
    rig.runs('a', { startedMsAgo: 60_000 });
    rig.manager.trigger(rig.uid, rig.status ?? {});
    await rig.pass(1_000);
    assert.deepEqual(rig.askedAt, []);
    rig.runs('b');
    rig.manager.trigger(rig.uid, rig.status ?? {});
    await rig.pass(0);
    assert.deepEqual(rig.askedAt, [2_000]);
  });
});

describe('a probe result', () => {
  it('counts after the threshold of consecutive equal results', async () => {
    const script = 'SfSSffSfffS';
    let turn = 0;
    const answer = () => ({ is: script[turn++] === 'S' ? 'success' : 'failure' }) as const;
    await using rig = await rigOf(readiness({ failureThreshold: 3, successThreshold: 2 }), 'a', answer);
    const seen: string[] = [];
    for (let at = 0; at < script.length; at++) {
      seen.push(rig.result('readiness', 'a') === 'success' ? 'S' : 'f');
      await rig.pass(10_000);
    }
    assert.equal(seen.join(''), 'fffSSSSSSff');
  });

  it('of readiness is reported on each change, with the full container id', async () => {
    await using rig = await rigOf(readiness({ failureThreshold: 1 }), 'a');
    await rig.pass(10_000);
    rig.answer = fails;
    await rig.pass(20_000);
    const told = { type: 'readiness', podUid: rig.uid, containerId: 'containerd://a' };
    assert.deepEqual(rig.changes, [
      { ...told, result: 'success' },
      { ...told, result: 'failure' },
    ]);
  });

  it('of failed liveness is kept until the container is replaced', async () => {
    const rig = new ProbeRig({ container: liveness({ failureThreshold: 2 }) });
    await using _end = rig;
    rig.answer = fails;
    rig.runs('a');
    await rig.begin();
    await rig.pass(30_000);
    assert.deepEqual(rig.askedAt, [0, 10_000]);
    assert.equal(rig.result('liveness', 'a'), 'failure');
    rig.runs('b');
    await rig.pass(10_000);
    assert.deepEqual([rig.result('liveness', 'a'), rig.result('liveness', 'b')], [undefined, 'success']);
    assert.deepEqual(rig.askedAt, [0, 10_000, 40_000]);
    await rig.pass(10_000);
    assert.equal(rig.result('liveness', 'b'), 'failure');
    assert.deepEqual(
      rig.changes.map(({ containerId, result }) => [containerId, result]),
      [
        ['containerd://a', 'failure'],
        ['containerd://b', 'failure'],
      ],
    );
  });

  it('of a previous instance does not count for the next one', async () => {
    const rig = new ProbeRig({ container: liveness({ failureThreshold: 3 }) });
    await using _end = rig;
    rig.answer = fails;
    rig.runs('a');
    await rig.begin();
    await rig.pass(15_000);
    rig.runs('b');
    await rig.pass(20_000);
    assert.deepEqual(
      rig.events.map((message) => message.slice(-5)),
      ['(1/3)', '(2/3)', '(1/3)', '(2/3)'],
    );
    assert.equal(rig.result('liveness', 'b'), 'success');
  });

  it('that arrives after the instance was replaced or exited is dropped', async () => {
    for (const replaced of [true, false]) {
      const rig = new ProbeRig({ container: readiness({ failureThreshold: 1, timeoutSeconds: 5 }) });
      await using _end = rig;
      rig.answer = () => ({ is: 'success', afterMs: 2_000 });
      rig.runs('a');
      await rig.begin();
      await rig.pass(1_000);
      if (replaced) rig.runs('b');
      else rig.is('a', { state: { terminated: { exitCode: 1 } } });
      await rig.pass(5_000);
      assert.deepEqual([rig.changes, rig.events], [[], []]);
      assert.notEqual(rig.result('readiness', 'a'), 'success');
      assert.equal(rig.result('readiness', 'b'), undefined);
    }
  });

  it('of startup is final for an instance', async () => {
    for (const [is, result] of [
      ['success', 'success'],
      ['failure', 'failure'],
    ] as const) {
      const rig = new ProbeRig({ container: startup({ failureThreshold: 2 }) });
      await using _end = rig;
      rig.answer = () => ({ is });
      rig.runs('a');
      await rig.begin();
      await rig.pass(60_000);
      assert.deepEqual(rig.askedAt, is === 'success' ? [0] : [0, 10_000]);
      assert.deepEqual(
        rig.changes.map((change) => [change.type, change.result]),
        [['startup', result]],
      );
    }
  });

  it('that fails three times with an error is recorded and changes nothing', async () => {
    await using rig = await rigOf(liveness({ failureThreshold: 1 }));
    rig.answer = () => ({ is: 'error', output: 'no such thing' });
    rig.runs('a');
    await rig.pass(10_000);
    assert.equal(rig.asked.length, 3);
    assert.equal(rig.result('liveness', 'a'), 'success');
    assert.deepEqual(rig.events, [
      'Unhealthy Liveness probe errored and resulted in unknown state: no such thing',
    ]);
    assert.match(
      await rig.registry.expose(new AbortController().signal),
      /result="unknown".*pod_uid="uid-1"\} 1\n/,
    );
  });

  it('counts when the second attempt succeeds', async () => {
    await using rig = await rigOf(readiness());
    let turn = 0;
    rig.answer = () => (turn++ === 0 ? { is: 'error' } : { is: 'success' });
    rig.runs('a');
    await rig.pass(10_000);
    assert.equal(rig.result('readiness', 'a'), 'success');
    assert.deepEqual(rig.events, []);
  });

  it('that fails is recorded with its count, limited to the threshold', async () => {
    const rig = new ProbeRig({ container: readiness({ failureThreshold: 2 }) });
    await using _end = rig;
    rig.answer = () => ({ is: 'failure', output: 'HTTP probe failed with statuscode: 500' });
    rig.runs('a');
    await rig.begin();
    await rig.pass(20_000);
    const message = 'Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 500';
    assert.deepEqual(rig.events, [`${message} (1/2)`, `${message} (2/2)`, `${message} (2/2)`]);
    const [event] = rig.journal.events;
    assert.deepEqual([event?.type, event?.fieldPath], ['Warning', 'spec.containers{main}']);
  });

  it('with a warning counts as success', async () => {
    await using rig = await rigOf(readiness());
    rig.answer = () => ({ is: 'warning', output: 'Probe terminated redirects, Response body: ' });
    rig.runs('a');
    await rig.pass(10_000);
    assert.equal(rig.result('readiness', 'a'), 'success');
    assert.deepEqual(rig.events, [
      'ProbeWarning Readiness probe warning: Probe terminated redirects, Response body: ',
    ]);
  });
});

describe('a container with a startup probe', () => {
  it('gets no other probes before it has started, and no startup probe afterwards', async () => {
    const rig = new ProbeRig({ container: { ...startup(), ...liveness(), ...readiness() } });
    await using _end = rig;
    rig.answer = ({ type }) => ({ is: type === 'startup' ? 'failure' : 'success' });
    rig.runs('a');
    await rig.begin();
    await rig.pass(15_000);
    assert.deepEqual(new Set(rig.asked.map(({ type }) => type)), new Set(['startup']));
    rig.answer = () => ({ is: 'success' });
    await rig.pass(5_000);
    const after = rig.asked.length;
    await rig.pass(20_000);
    assert.deepEqual(
      new Set(rig.asked.slice(after).map(({ type }) => type)),
      new Set(['liveness', 'readiness']),
    );
  });
});

describe('a container that is not running', () => {
  it('has not failed before its first start, and its delay counts from its start', async () => {
    await using rig = await rigOf(
      liveness({ periodSeconds: 1, initialDelaySeconds: 5, failureThreshold: 1 }),
    );
    rig.is('a', { state: { waiting: { reason: 'ContainerCreating' } } });
    await rig.pass(10_000);
    assert.equal(rig.result('liveness', 'a'), undefined);
    rig.runs('a');
    await rig.pass(4_000);
    assert.deepEqual([rig.result('liveness', 'a'), rig.asked], ['success', []]);
  });

  it('has failed, and is probed again after its restart', async () => {
    await using rig = await rigOf(readiness(), 'a');
    await rig.pass(1_000);
    rig.is('a', { state: { terminated: { exitCode: 1 } } });
    await rig.pass(10_000);
    assert.equal(rig.result('readiness', 'a'), 'failure');
    rig.is('a', { state: { waiting: { reason: 'CrashLoopBackOff' } } });
    await rig.pass(10_000);
    rig.runs('b');
    await rig.pass(10_000);
    assert.equal(rig.result('readiness', 'b'), 'success');
  });

  for (const [what, policy, exitCode, goesOn] of [
    ['Never', 'Never', 0, false],
    ['OnFailure after success', 'OnFailure', 0, false],
    ['OnFailure after failure', 'OnFailure', 1, true],
    ['Always', 'Always', 0, true],
  ] as const) {
    it(`under ${what} is ${goesOn ? 'waited for' : 'no longer watched'}`, async () => {
      const rig = new ProbeRig({ container: liveness(), pod: { spec: { restartPolicy: policy } } });
      await using _end = rig;
      rig.is('a', { state: { terminated: { exitCode } } });
      await rig.begin();
      assert.equal(rig.manager.held().workers, goesOn ? 1 : 0);
      rig.manager.addPod(rig.pod);
      await rig.pass(10_000);
      assert.equal(rig.manager.held().workers, goesOn ? 1 : 0);
    });
  }

  it('is still watched when an exit may restart all containers', async () => {
    const restartPolicyRules = [{ action: 'RestartAllContainers' }];
    const rig = new ProbeRig({
      container: { ...liveness(), restartPolicy: 'Never', restartPolicyRules },
      pod: { spec: { restartPolicy: 'Never' } },
    });
    await using _end = rig;
    rig.is('a', { state: { terminated: { exitCode: 0 } } });
    await rig.begin();
    assert.equal(rig.manager.held().workers, 1);
  });
});

describe('a terminating pod', () => {
  it('gets only readiness probes until its containers are removed', async () => {
    await using rig = await rigOf({ ...liveness(), ...readiness() }, 'a');
    rig.manager.stopLivenessAndStartup(rig.uid);
    rig.answer = fails;
    await rig.pass(30_000);
    assert.deepEqual(
      rig.changes.map(({ type, result }) => `${type} ${result}`),
      ['readiness success', 'readiness failure'],
    );
    rig.manager.removePod(rig.uid);
    const asked = rig.asked.length;
    await rig.pass(30_000);
    assert.equal(rig.asked.length, asked);
    assert.deepEqual(rig.manager.held(), { pods: 0, workers: 0, results: 0 });
    assert.equal(rig.clock.pendingTimers, 0);
  });

  it('is not killed for a result in flight', async () => {
    const rig = new ProbeRig({ container: liveness({ failureThreshold: 1, timeoutSeconds: 5 }) });
    await using _end = rig;
    rig.answer = () => ({ is: 'failure', afterMs: 2_000 });
    rig.runs('a');
    await rig.begin();
    await rig.pass(1_000);
    rig.manager.stopLivenessAndStartup(rig.uid);
    await rig.pass(5_000);
    assert.deepEqual([rig.changes, rig.events], [[], []]);
  });

  it('ends its liveness and startup probes itself', async () => {
    const deleted = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };
    for (const terminating of [true, false]) {
      const rig = new ProbeRig({
        container: { ...liveness(), ...startup(), ...readiness() },
        ...(terminating ? {} : { pod: deleted }),
      });
      await using _end = rig;
      rig.terminating = terminating;
      rig.runs('a', { started: true });
      await rig.begin();
      await rig.pass(10_000);
      assert.deepEqual(new Set(rig.asked.map(({ type }) => type)), new Set(['readiness']));
      assert.equal(rig.manager.held().workers, 1);
    }
  });
});

describe('the probes of a pod', () => {
  it('belong to its regular containers and sidecars', async () => {
    const all = { ...liveness(), ...readiness(), ...startup() };
    const plain = { name: 'plain', image: 'x', livenessProbe: http };
    const rig = new ProbeRig({
      pod: {
        spec: {
          initContainers: [plain, { ...all, name: 'side', image: 'x', restartPolicy: 'Always' }],
          containers: [
            { ...all, name: 'main', image: 'x' },
            { name: 'none', image: 'x' },
          ],
        },
      },
    });
    await using _end = rig;
    await rig.begin();
    rig.manager.addPod(rig.pod);
    assert.equal(rig.manager.held().workers, 6);
  });

  it('of a sidecar use the status of its init container', async () => {
    const rig = new ProbeRig({ sidecar: readiness(), container: {} });
    await using _end = rig;
    rig.runs('s');
    await rig.begin();
    assert.equal(rig.result('readiness', 's'), 'success');
    assert.equal(rig.asked[0]?.container, 'side');
  });

  it('are not changed by edits of the pod', async () => {
    await using rig = await rigOf(liveness(), 'a');
    const edited = { ...rig.pod.spec.containers[0], name: 'main', livenessProbe: { tcpSocket: { port: 1 } } };
    rig.manager.addPod({ ...rig.pod, spec: { ...rig.pod.spec, containers: [edited] } });
    await rig.pass(10_000);
    assert.deepEqual(new Set(rig.asked.map(({ action }) => action.kind)), new Set(['http']));
  });

  it('end with the pod, which is removed from the metrics', async () => {
    await using rig = await rigOf(readiness(), 'a');
    const { signal } = new AbortController();
    const labels = 'container="main",pod="web",namespace="default"';
    const before = await rig.registry.expose(signal);
    assert.match(
      before,
      new RegExp(
        `prober_probe_total\\{probe_type="Readiness",result="successful",${labels},pod_uid="uid-1"\\} 1\n`,
      ),
    );
    assert.match(
      before,
      new RegExp(`prober_probe_duration_seconds_count\\{probe_type="Readiness",${labels}\\} 1\n`),
    );
    rig.manager.retain((uid) => uid === rig.uid);
    assert.equal(rig.manager.held().pods, 1);
    rig.manager.retain(() => false);
    await rig.pass(0);
    assert.deepEqual(rig.manager.held(), { pods: 0, workers: 0, results: 0 });
    assert.doesNotMatch(await rig.registry.expose(signal), /prober_probe_\w+\{/);
  });

  it('survive an internal error', async () => {
    await using rig = await rigOf(liveness(), 'a');
    rig.answer = () => {
      throw new TypeError('a bug');
    };
    await rig.pass(10_000);
    rig.answer = () => ({ is: 'success' });
    await rig.pass(10_000);
    assert.equal(rig.manager.held().workers, 1);
  });
});
