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
  response: ProbeRig['answer'] = () => ({ is: 'success' }),
): Promise<ProbeRig> {
  const harness = new ProbeRig({ container });
  harness.answer = response;
  await harness.begin(id);
  return harness;
}

describe('initial probe results', () => {
  for (const [type, container, initial] of [
    ['readiness', readiness(), 'failure'],
    ['liveness', liveness(), 'success'],
    ['startup', startup(), 'unknown'],
  ] as const) {
    it(`before the first probe the ${type} result is ${initial}`, async () => {
      await using harness = await rigOf({
        ...container,
        [`${type}Probe`]: { ...http, initialDelaySeconds: 30 },
      });
      assert.equal(harness.result(type, 'a'), undefined);
      harness.runs('a');
      await harness.pass(10_000);
      assert.equal(harness.result(type, 'a'), initial);
      assert.deepEqual([harness.asked, harness.changes], [[], []]);
    });
  }

  it('returns no result before the first probe of a container that started long before the kubelet, so that its published status counts', async () => {
    const harness = new ProbeRig({ container: { ...readiness(), ...liveness(), ...startup() }, uptimeMs: 0 });
    await using _end = harness;
    harness.runs('a', { startedMsAgo: 11_000, started: false, ready: false });
    harness.answer = () => ({ is: 'error' });
    await harness.begin();
    await harness.pass(15_000);
    for (const type of ['readiness', 'liveness', 'startup'] as const)
      assert.equal(harness.result(type, 'a'), undefined);
  });

  it('before the first probe returns the published result of the same instance, even if the instance started recently', async () => {
    const harness = new ProbeRig({
      container: { ...readiness({ initialDelaySeconds: 99 }), ...startup() },
      uptimeMs: 0,
    });
    await using _end = harness;
    harness.runs('a', { startedMsAgo: 2_000, started: true, ready: true });
    await harness.begin();
    await harness.pass(10_000);
    assert.deepEqual(
      [harness.result('readiness', 'a'), harness.result('startup', 'a')],
      ['success', 'success'],
    );
    assert.deepEqual([harness.asked, harness.changes], [[], []]);
  });
});

describe('probe times', () => {
  it('probes a container once per period, by default every ten seconds', async () => {
    await using harness = await rigOf({ livenessProbe: { httpGet: { port: 80 } } }, 'a');
    await harness.pass(25_000);
    assert.deepEqual(harness.askedAt, [0, 10_000, 20_000]);
    assert.equal(harness.asked[0]?.timeoutMs, 1_000);
  });

  it('does not probe a container before its initial delay, in whole seconds since its start', async () => {
    await using harness = await rigOf(liveness({ periodSeconds: 1, initialDelaySeconds: 5 }), 'a');
    await harness.pass(6_500);
    assert.deepEqual(harness.askedAt, [5_000, 6_000]);
  });

  it('probes a container in time when the wall clock is set back', async () => {
    await using harness = await rigOf(liveness({ periodSeconds: 1, initialDelaySeconds: 2 }), 'a');
    harness.clock.jumpWall(-3_600_000);
    await harness.pass(2_500);
    assert.deepEqual(harness.askedAt, [2_000]);
  });

  it("probes a container first at a random time in the first period after the kubelet's start", async () => {
    const harness = new ProbeRig({ container: liveness(), uptimeMs: 0, random: { next: () => 0.37 } });
    await using _end = harness;
    harness.runs('a');
    await harness.begin();
    await harness.pass(14_000);
    assert.deepEqual(harness.askedAt, [3_700, 13_700]);
  });

  it('does not probe a container while the previous probe runs', async () => {
    const slow = () => ({ is: 'success', afterMs: 2_500 }) as const;
    await using harness = await rigOf(liveness({ periodSeconds: 1, timeoutSeconds: 5 }), 'a', slow);
    await harness.pass(6_000);
    assert.deepEqual(harness.askedAt, [0, 2_500, 5_000]);
  });

  it('does not probe a container without a status or an instance', async () => {
    await using harness = await rigOf(liveness());
    await harness.pass(10_000);
    harness.status = { phase: 'Pending', containerStatuses: [] };
    await harness.pass(10_000);
    assert.deepEqual(harness.asked, []);
    harness.runs('a');
    await harness.pass(10_000);
    assert.deepEqual(harness.askedAt, [30_000]);
  });

  it('does not probe a container after its pod has ended', async () => {
    await using harness = await rigOf(liveness(), 'a');
    for (const phase of ['Succeeded', 'Failed']) harness.is('a', {}, phase);
    await harness.pass(30_000);
    assert.deepEqual(harness.askedAt, [0]);
    assert.deepEqual(harness.manager.held(), { pods: 1, workers: 0, results: 0 });
  });

  it('probes readiness immediately after the start of a container', async () => {
    await using harness = await rigOf(readiness());
    await harness.pass(2_000);
    harness.runs('a');
    harness.manager.trigger(harness.uid, harness.status ?? {});
    await harness.pass(0);
    assert.deepEqual(harness.askedAt, [2_000]);
    harness.manager.trigger(harness.uid, harness.status ?? {});
    await harness.pass(10_000);
    assert.deepEqual(harness.askedAt, [2_000, 12_000]);
  });

  it('probes readiness only at the regular time if the container has not started or was started before the kubelet', async () => {
    const harness = new ProbeRig({ container: readiness(), uptimeMs: 0, random: { next: () => 0.9 } });
    await using _end = harness;
    harness.runs('a', { started: false });
    await harness.begin();
    harness.manager.trigger(harness.uid, harness.status ?? {});
    await harness.pass(1_000);
    assert.deepEqual(harness.askedAt, []);
    harness.runs('a', { startedMsAgo: 60_000 });
    harness.manager.trigger(harness.uid, harness.status ?? {});
    await harness.pass(1_000);
    assert.deepEqual(harness.askedAt, []);
    harness.runs('b');
    harness.manager.trigger(harness.uid, harness.status ?? {});
    await harness.pass(0);
    assert.deepEqual(harness.askedAt, [2_000]);
  });
});

describe('probe results', () => {
  it('changes a probe result after the threshold of consecutive equal results', async () => {
    const script = 'SfSSffSfffS';
    let turn = 0;
    const answer = () => ({ is: script[turn++] === 'S' ? 'success' : 'failure' }) as const;
    await using harness = await rigOf(readiness({ failureThreshold: 3, successThreshold: 2 }), 'a', answer);
    const observed: string[] = [];
    for (let at = 0; at < script.length; at++) {
      observed.push(harness.result('readiness', 'a') === 'success' ? 'S' : 'f');
      await harness.pass(10_000);
    }
    assert.equal(observed.join(''), 'fffSSSSSSff');
  });

  it('reports each change of a readiness result with the full container ID', async () => {
    await using harness = await rigOf(readiness({ failureThreshold: 1 }), 'a');
    await harness.pass(10_000);
    harness.answer = fails;
    await harness.pass(20_000);
    const reported = { type: 'readiness', podUid: harness.uid, containerId: 'containerd://a' };
    assert.deepEqual(harness.changes, [
      { ...reported, result: 'success' },
      { ...reported, result: 'failure' },
    ]);
  });

  it('keeps a failed liveness result until the container is replaced', async () => {
    const harness = new ProbeRig({ container: liveness({ failureThreshold: 2 }) });
    await using _end = harness;
    harness.answer = fails;
    harness.runs('a');
    await harness.begin();
    await harness.pass(30_000);
    assert.deepEqual(harness.askedAt, [0, 10_000]);
    assert.equal(harness.result('liveness', 'a'), 'failure');
    harness.runs('b');
    await harness.pass(10_000);
    assert.deepEqual(
      [harness.result('liveness', 'a'), harness.result('liveness', 'b')],
      [undefined, 'success'],
    );
    assert.deepEqual(harness.askedAt, [0, 10_000, 40_000]);
    await harness.pass(10_000);
    assert.equal(harness.result('liveness', 'b'), 'failure');
    assert.deepEqual(
      harness.changes.map(({ containerId, result }) => [containerId, result]),
      [
        ['containerd://a', 'failure'],
        ['containerd://b', 'failure'],
      ],
    );
  });

  it('does not apply the probe result of a previous instance to the next one', async () => {
    const harness = new ProbeRig({ container: liveness({ failureThreshold: 3 }) });
    await using _end = harness;
    harness.answer = fails;
    harness.runs('a');
    await harness.begin();
    await harness.pass(15_000);
    harness.runs('b');
    await harness.pass(20_000);
    assert.deepEqual(
      harness.events.map((message) => message.slice(-5)),
      ['(1/3)', '(2/3)', '(1/3)', '(2/3)'],
    );
    assert.equal(harness.result('liveness', 'b'), 'success');
  });

  it('drops a probe result that arrives after the instance was replaced or exited', async () => {
    for (const replaced of [true, false]) {
      const harness = new ProbeRig({ container: readiness({ failureThreshold: 1, timeoutSeconds: 5 }) });
      await using _end = harness;
      harness.answer = () => ({ is: 'success', afterMs: 2_000 });
      harness.runs('a');
      await harness.begin();
      await harness.pass(1_000);
      if (replaced) harness.runs('b');
      else harness.is('a', { state: { terminated: { exitCode: 1 } } });
      await harness.pass(5_000);
      assert.deepEqual([harness.changes, harness.events], [[], []]);
      assert.notEqual(harness.result('readiness', 'a'), 'success');
      assert.equal(harness.result('readiness', 'b'), undefined);
    }
  });

  it('keeps a startup result of success or failure until the container instance is replaced', async () => {
    for (const [is, result] of [
      ['success', 'success'],
      ['failure', 'failure'],
    ] as const) {
      const harness = new ProbeRig({ container: startup({ failureThreshold: 2 }) });
      await using _end = harness;
      harness.answer = () => ({ is });
      harness.runs('a');
      await harness.begin();
      await harness.pass(60_000);
      assert.deepEqual(harness.askedAt, is === 'success' ? [0] : [0, 10_000]);
      assert.deepEqual(
        harness.changes.map((change) => [change.type, change.result]),
        [['startup', result]],
      );
    }
  });

  it('records an error when all three attempts of a probe fail to run, and keeps the previous result', async () => {
    await using harness = await rigOf(liveness({ failureThreshold: 1 }));
    harness.answer = () => ({ is: 'error', output: 'no such thing' });
    harness.runs('a');
    await harness.pass(10_000);
    assert.equal(harness.asked.length, 3);
    assert.equal(harness.result('liveness', 'a'), 'success');
    assert.deepEqual(harness.events, [
      'Unhealthy Liveness probe errored and resulted in unknown state: no such thing',
    ]);
    assert.match(
      await harness.registry.expose(new AbortController().signal),
      /result="unknown".*pod_uid="uid-1"\} 1\n/,
    );
  });

  it('uses the result of the second attempt when the first attempt of a probe cannot be run', async () => {
    await using harness = await rigOf(readiness());
    let turn = 0;
    harness.answer = () => (turn++ === 0 ? { is: 'error' } : { is: 'success' });
    harness.runs('a');
    await harness.pass(10_000);
    assert.equal(harness.result('readiness', 'a'), 'success');
    assert.deepEqual(harness.events, []);
  });

  it('records a failed probe with its count, limited to the threshold', async () => {
    const harness = new ProbeRig({ container: readiness({ failureThreshold: 2 }) });
    await using _end = harness;
    harness.answer = () => ({ is: 'failure', output: 'HTTP probe failed with statuscode: 500' });
    harness.runs('a');
    await harness.begin();
    await harness.pass(20_000);
    const message = 'Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 500';
    assert.deepEqual(harness.events, [`${message} (1/2)`, `${message} (2/2)`, `${message} (2/2)`]);
    const [event] = harness.journal.events;
    assert.deepEqual([event?.type, event?.fieldPath], ['Warning', 'spec.containers{main}']);
  });

  it('counts a probe with a warning as success', async () => {
    await using harness = await rigOf(readiness());
    harness.answer = () => ({ is: 'warning', output: 'Probe terminated redirects, Response body: ' });
    harness.runs('a');
    await harness.pass(10_000);
    assert.equal(harness.result('readiness', 'a'), 'success');
    assert.deepEqual(harness.events, [
      'ProbeWarning Readiness probe warning: Probe terminated redirects, Response body: ',
    ]);
  });
});

describe('startup probes', () => {
  it('runs no other probes before the startup probe has succeeded, and no startup probe afterwards', async () => {
    const harness = new ProbeRig({ container: { ...startup(), ...liveness(), ...readiness() } });
    await using _end = harness;
    harness.answer = ({ type }) => ({ is: type === 'startup' ? 'failure' : 'success' });
    harness.runs('a');
    await harness.begin();
    await harness.pass(15_000);
    assert.deepEqual(new Set(harness.asked.map(({ type }) => type)), new Set(['startup']));
    harness.answer = () => ({ is: 'success' });
    await harness.pass(5_000);
    const after = harness.asked.length;
    await harness.pass(20_000);
    assert.deepEqual(
      new Set(harness.asked.slice(after).map(({ type }) => type)),
      new Set(['liveness', 'readiness']),
    );
  });
});

describe('probes of exited containers', () => {
  it('reports no failure before the first start of a container, and counts the initial delay from its start', async () => {
    await using harness = await rigOf(
      liveness({ periodSeconds: 1, initialDelaySeconds: 5, failureThreshold: 1 }),
    );
    harness.is('a', { state: { waiting: { reason: 'ContainerCreating' } } });
    await harness.pass(10_000);
    assert.equal(harness.result('liveness', 'a'), undefined);
    harness.runs('a');
    await harness.pass(4_000);
    assert.deepEqual([harness.result('liveness', 'a'), harness.asked], ['success', []]);
  });

  it('reports failure for an exited container, and probes it again after its restart', async () => {
    await using harness = await rigOf(readiness(), 'a');
    await harness.pass(1_000);
    harness.is('a', { state: { terminated: { exitCode: 1 } } });
    await harness.pass(10_000);
    assert.equal(harness.result('readiness', 'a'), 'failure');
    harness.is('a', { state: { waiting: { reason: 'CrashLoopBackOff' } } });
    await harness.pass(10_000);
    harness.runs('b');
    await harness.pass(10_000);
    assert.equal(harness.result('readiness', 'b'), 'success');
  });

  for (const [what, policy, exitCode, goesOn] of [
    ['Never', 'Never', 0, false],
    ['OnFailure after success', 'OnFailure', 0, false],
    ['OnFailure after failure', 'OnFailure', 1, true],
    ['Always', 'Always', 0, true],
  ] as const) {
    it(`under ${what} ${goesOn ? 'keeps' : 'ends'} the worker of an exited container`, async () => {
      const harness = new ProbeRig({ container: liveness(), pod: { spec: { restartPolicy: policy } } });
      await using _end = harness;
      harness.is('a', { state: { terminated: { exitCode } } });
      await harness.begin();
      assert.equal(harness.manager.held().workers, goesOn ? 1 : 0);
      harness.manager.addPod(harness.pod);
      await harness.pass(10_000);
      assert.equal(harness.manager.held().workers, goesOn ? 1 : 0);
    });
  }

  it('keeps the worker of an exited container when an exit may restart all containers', async () => {
    const restartPolicyRules = [{ action: 'RestartAllContainers' }];
    const harness = new ProbeRig({
      container: { ...liveness(), restartPolicy: 'Never', restartPolicyRules },
      pod: { spec: { restartPolicy: 'Never' } },
    });
    await using _end = harness;
    harness.is('a', { state: { terminated: { exitCode: 0 } } });
    await harness.begin();
    assert.equal(harness.manager.held().workers, 1);
  });
});

describe('probes of a terminating pod', () => {
  it('runs only readiness probes for a terminating pod until its containers are removed', async () => {
    await using harness = await rigOf({ ...liveness(), ...readiness() }, 'a');
    harness.manager.stopLivenessAndStartup(harness.uid);
    harness.answer = fails;
    await harness.pass(30_000);
    assert.deepEqual(
      harness.changes.map(({ type, result }) => `${type} ${result}`),
      ['readiness success', 'readiness failure'],
    );
    harness.manager.removePod(harness.uid);
    const requested = harness.asked.length;
    await harness.pass(30_000);
    assert.equal(harness.asked.length, requested);
    assert.deepEqual(harness.manager.held(), { pods: 0, workers: 0, results: 0 });
    assert.equal(harness.clock.pendingTimers, 0);
  });

  it('ignores a liveness result in flight when the pod terminates', async () => {
    const harness = new ProbeRig({ container: liveness({ failureThreshold: 1, timeoutSeconds: 5 }) });
    await using _end = harness;
    harness.answer = () => ({ is: 'failure', afterMs: 2_000 });
    harness.runs('a');
    await harness.begin();
    await harness.pass(1_000);
    harness.manager.stopLivenessAndStartup(harness.uid);
    await harness.pass(5_000);
    assert.deepEqual([harness.changes, harness.events], [[], []]);
  });

  it('ends liveness and startup workers of a pod that terminates or is deleted', async () => {
    const deleted = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };
    for (const terminating of [true, false]) {
      const harness = new ProbeRig({
        container: { ...liveness(), ...startup(), ...readiness() },
        ...(terminating ? {} : { pod: deleted }),
      });
      await using _end = harness;
      harness.terminating = terminating;
      harness.runs('a', { started: true });
      await harness.begin();
      await harness.pass(10_000);
      assert.deepEqual(new Set(harness.asked.map(({ type }) => type)), new Set(['readiness']));
      assert.equal(harness.manager.held().workers, 1);
    }
  });
});

describe('probe workers of a pod', () => {
  it('creates probe workers for regular containers and sidecars', async () => {
    const all = { ...liveness(), ...readiness(), ...startup() };
    const plain = { name: 'plain', image: 'x', livenessProbe: http };
    const harness = new ProbeRig({
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
    await using _end = harness;
    await harness.begin();
    harness.manager.addPod(harness.pod);
    assert.equal(harness.manager.held().workers, 6);
  });

  it('uses the init container status of a sidecar for its probes', async () => {
    const harness = new ProbeRig({ sidecar: readiness(), container: {} });
    await using _end = harness;
    harness.runs('s');
    await harness.begin();
    assert.equal(harness.result('readiness', 's'), 'success');
    assert.equal(harness.asked[0]?.container, 'side');
  });

  it('does not change running probes when the pod is edited', async () => {
    await using harness = await rigOf(liveness(), 'a');
    const edited = {
      ...harness.pod.spec.containers[0],
      name: 'main',
      livenessProbe: { tcpSocket: { port: 1 } },
    };
    harness.manager.addPod({ ...harness.pod, spec: { ...harness.pod.spec, containers: [edited] } });
    await harness.pass(10_000);
    assert.deepEqual(new Set(harness.asked.map(({ action }) => action.kind)), new Set(['http']));
  });

  it('stops the probes of a pod that no longer exists, and removes their metrics', async () => {
    await using harness = await rigOf(readiness(), 'a');
    const { signal } = new AbortController();
    const labels = 'container="main",pod="web",namespace="default"';
    const before = await harness.registry.expose(signal);
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
    harness.manager.retain((uid) => uid === harness.uid);
    assert.equal(harness.manager.held().pods, 1);
    harness.manager.retain(() => false);
    await harness.pass(0);
    assert.deepEqual(harness.manager.held(), { pods: 0, workers: 0, results: 0 });
    assert.doesNotMatch(await harness.registry.expose(signal), /prober_probe_\w+\{/);
  });

  it('continues probing after an internal error', async () => {
    await using harness = await rigOf(liveness(), 'a');
    harness.answer = () => {
      throw new TypeError('a bug');
    };
    await harness.pass(10_000);
    harness.answer = () => ({ is: 'success' });
    await harness.pass(10_000);
    assert.equal(harness.manager.held().workers, 1);
  });
});
