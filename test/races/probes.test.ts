import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Container, ContainerStatus, Probe } from '../../src/kinds/index.ts';
import type { PodUid } from '../../src/pods/index.ts';
import type { ProbeRequest } from '../../src/probes/index.ts';
import { type ScriptedAnswer, scriptedProber } from '../fakes/scripted-prober.ts';
import { images } from '../simulation/sketch.ts';
import { apiPod, manifest } from './pods.ts';
import { RaceNode, type RaceOptions } from './race-node.ts';

type Script = (question: ProbeRequest) => ScriptedAnswer;

/** A node whose containers respond to probes as the test currently defines. */
async function probedNode(options: RaceOptions = {}) {
  const state = { answer: (() => ({ is: 'success' })) as Script, asked: [] as ProbeRequest[] };
  let node: RaceNode | undefined;
  const prober = {
    probe(question: ProbeRequest, signal: AbortSignal) {
      state.asked.push(question);
      const { clock } = node?.world ?? assert.fail('nobody asks before there is a node');
      return scriptedProber({ clock, script: state.answer }).probe(question, signal);
    },
  };
  node = await RaceNode.start({ ...options, machine: { prober } });
  return { node, state };
}

const probe: Probe = { tcpSocket: { port: 80 }, periodSeconds: 5, failureThreshold: 1 };

function probed(fields: Partial<Container>, name = 'web'): string {
  const container: Container = { name: 'app', image: images.present, command: ['app', '{}'], ...fields };
  return manifest(name, { spec: { containers: [{ imagePullPolicy: 'IfNotPresent', ...container }] } });
}

function containerOf(node: RaceNode, uid: PodUid): ContainerStatus | undefined {
  return node.kubelet.state.statuses.getPodStatus(uid)?.containerStatuses?.[0];
}

function readyOf(node: RaceNode, uid: PodUid): string | undefined {
  const { conditions = [] } = node.kubelet.state.statuses.getPodStatus(uid) ?? {};
  return conditions.find(({ type }) => type === 'Ready')?.status;
}

it('a container that fails its liveness probe is stopped with the grace period of the probe, and restarted', async () => {
  const { node, state } = await probedNode({ tolerates: ['nothing stops that its manifest asks for'] });
  await using _end = node;
  const command = ['app', JSON.stringify({ onTerm: 'ignore' })];
  const livenessProbe = { ...probe, terminationGracePeriodSeconds: 7 };
  const uid = await node.runsStatic('web', probed({ command, livenessProbe }));
  const first = containerOf(node, uid)?.containerID;
  await node.pass(20_000);
  assert.equal(containerOf(node, uid)?.containerID, first);
  state.answer = () => ({ is: 'failure', output: 'gone' });
  await node.until(
    'it is told to stop',
    () => node.calls.some(({ method }) => method === 'stopContainer'),
    6_000,
  );
  state.answer = () => ({ is: 'success' });
  assert.equal(node.calls.find(({ method }) => method === 'stopContainer')?.request['timeout'], 7n);
  await node.until('it runs again', () => containerOf(node, uid)?.restartCount === 1, 15_000);
  await node.until('and is ready', () => containerOf(node, uid)?.ready === true, 5_000);
  const reasons = node.events(uid);
  assert.ok(reasons.includes('Unhealthy') && reasons.includes('Killing'), reasons.join());
  await node.pass(60_000);
  assert.equal(containerOf(node, uid)?.restartCount, 1);
});

it('a container that fails its liveness probe is recreated only once, even with a slow postStart hook', async () => {
  const { node, state } = await probedNode({ tolerates: ['nothing stops that its manifest asks for'] });
  await using _end = node;
  const lifecycle = { postStart: { sleep: { seconds: 2 } } };
  const livenessProbe = { ...probe, periodSeconds: 10 };
  const uid = await node.runsStatic('web', probed({ livenessProbe, lifecycle }));
  await node.pass(15_000);
  state.answer = () => ({ is: 'failure' });
  const isStopped = () => node.calls.some(({ method }) => method === 'stopContainer');
  await node.until('it is told to stop', isStopped, 15_000);
  state.answer = () => ({ is: 'success' });
  await node.pass(30_000);
  assert.equal(containerOf(node, uid)?.restartCount, 1);
  assert.equal(node.of(uid, 'container-created').length, 2);
});

it('the Ready condition changes at the same moment as the probe result, in both directions', async () => {
  const { node, state } = await probedNode();
  await using _end = node;
  const uid = await node.runsStatic('web', probed({ readinessProbe: probe }));
  await node.until('it is ready', () => readyOf(node, uid) === 'True', 5_000);
  let answeredMs = 0;
  for (const [is, ready] of [
    ['failure', 'False'],
    ['success', 'True'],
  ] as const) {
    state.answer = () => {
      answeredMs = node.nowMs;
      return { is };
    };
    await node.until(`Ready is ${ready}`, () => readyOf(node, uid) === ready, 6_000);
    assert.equal(node.nowMs, answeredMs);
    assert.equal(containerOf(node, uid)?.ready, ready === 'True');
  }
});

it('only the startup probe runs until it succeeds; then the readiness probe runs immediately', async () => {
  const { node, state } = await probedNode();
  await using _end = node;
  state.answer = ({ type }) => ({ is: type === 'startup' ? 'failure' : 'success' });
  const startupProbe = { ...probe, failureThreshold: 100 };
  const text = probed({ startupProbe, readinessProbe: probe, livenessProbe: probe });
  const uid = await node.runsStatic('web', text);
  await node.pass(30_000);
  assert.deepEqual(new Set(state.asked.map(({ type }) => type)), new Set(['startup']));
  assert.deepEqual([containerOf(node, uid)?.started, containerOf(node, uid)?.ready], [false, false]);
  state.answer = () => ({ is: 'success' });
  await node.until('it has started', () => containerOf(node, uid)?.started === true, 6_000);
  const startedMs = node.nowMs;
  await node.until('it is ready', () => readyOf(node, uid) === 'True', 6_000);
  assert.equal(node.nowMs, startedMs);
  const requested = state.asked.length;
  await node.pass(20_000);
  assert.deepEqual(
    new Set(state.asked.slice(requested).map(({ type }) => type)),
    new Set(['liveness', 'readiness']),
  );
});

it('a failed startup probe restarts the container', async () => {
  const { node, state } = await probedNode({ tolerates: ['nothing stops that its manifest asks for'] });
  await using _end = node;
  state.answer = () => ({ is: 'failure' });
  const uid = await node.runsStatic('web', probed({ startupProbe: { ...probe, failureThreshold: 2 } }));
  await node.until('it was started again', () => containerOf(node, uid)?.restartCount === 1, 30_000);
});

it('a kubelet restart changes no readiness until a probe has a different result', async () => {
  const { node, state } = await probedNode();
  await using _end = node;
  const text = (name: string) => probed({ readinessProbe: probe, startupProbe: probe }, name);
  const well = await node.runsStatic('well', text('well'));
  state.answer = ({ podName, type }) => ({
    is: podName.startsWith('ill') && type === 'readiness' ? 'failure' : 'success',
  });
  const ill = await node.runsStatic('ill', text('ill'));
  await node.until('one is ready', () => readyOf(node, well) === 'True', 10_000);
  await node.until('the other has started', () => containerOf(node, ill)?.started === true, 10_000);
  for (const waitMs of [0, 20_000]) {
    await node.pass(waitMs);
    const observed = new Set<string>();
    const begun = node.kubeletStarted.bind(node);
    node.kubeletStarted = (life) => {
      begun(life);
      life.kubelet.state.statuses.onChange(({ uid, after }) => {
        const [status] = after.containerStatuses ?? [];
        if (status?.state?.running !== undefined)
          observed.add(`${uid === well ? 'well' : 'ill'} ${status.started} ${status.ready}`);
      });
    };
    // Probes fail with errors for a while; the published readiness must not change.
    state.answer = () => ({ is: 'error' });
    await node.restartKubelet();
    await node.pass(30_000);
    assert.deepEqual([readyOf(node, well), readyOf(node, ill)], ['True', 'False']);
    assert.deepEqual([containerOf(node, well)?.started, containerOf(node, ill)?.started], [true, true]);
    assert.deepEqual([...observed].toSorted(), ['ill true false', 'well true true']);
    state.answer = () => ({ is: 'success' });
    await node.until('both are ready', () => readyOf(node, ill) === 'True', 10_000);
    state.answer = ({ podName }) => ({ is: podName.startsWith('ill') ? 'failure' : 'success' });
    await node.until('one is not', () => readyOf(node, ill) === 'False', 10_000);
  }
  assert.deepEqual(node.restartCount(well), 0);
});

it('a terminating pod is not killed by its liveness probe, and no probe state is left afterwards', async () => {
  const { node, state } = await probedNode();
  await using _end = node;
  const command = ['app', JSON.stringify({ onTerm: 8_000 })];
  const text = manifest('web', {
    graceSeconds: 30,
    spec: {
      containers: [
        { name: 'app', image: images.present, command, livenessProbe: probe, readinessProbe: probe },
      ],
    },
  });
  const uid = await node.runsStatic('web', text);
  await node.until('it is ready', () => readyOf(node, uid) === 'True', 5_000);
  state.answer = () => ({ is: 'failure' });
  state.asked.length = 0;
  node.remove('web');
  await node.until(
    'it is told to stop',
    () => node.calls.some(({ method }) => method === 'stopContainer'),
    4_000,
  );
  await node.pass(7_000);
  assert.ok(state.asked.every(({ type }) => type === 'readiness'));
  await node.becomesClean(30_000);
  await node.pass(10_000);
  assert.deepEqual(
    Object.entries(node.kubelet.endpoints.entryCounts()).filter(
      ([room, count]) => room.startsWith('probes') && count !== 0,
    ),
    [],
  );
});

it('a probe command that never returns counts as consecutive failures and never runs twice concurrently', async () => {
  const { node } = await probedNode({ tolerates: ['nothing stops that its manifest asks for'] });
  await using _end = node;
  let under = 0;
  let most = 0;
  node.toll = {
    before: ({ method }) => {
      if (method !== 'execSync') return undefined;
      most = Math.max(most, ++under);
      return new Promise((_resolve, reject) => {
        node.world.clock.timer(120_000, () => {
          under--;
          reject(new Error('late'));
        });
      });
    },
  };
  const readinessProbe = { exec: { command: ['sleep', '1000'] }, periodSeconds: 1, timeoutSeconds: 1 };
  const uid = await node.runsStatic('web', probed({ readinessProbe }));
  // The test waits less than the half minute after which the ExecSync call is cancelled.
  await node.pass(25_000);
  assert.equal(most, 1);
  assert.equal(containerOf(node, uid)?.ready, false);
  assert.ok(node.logged('Runtime did not end the probe command') >= 1);
});

it('a restarted kubelet restores the readiness of API pods from their published status', async () => {
  const { node, state } = await probedNode({ settings: { apiPods: 'expected' } });
  await using _end = node;
  const uid = 'uid-web' as PodUid;
  const container = { name: 'app', image: images.present, command: ['app', '{}'], readinessProbe: probe };
  const web = apiPod('web', uid, { spec: { containers: [{ ...container, startupProbe: probe }] } });
  node.api(web);
  await node.until('it is ready', () => readyOf(node, uid) === 'True');
  const status = node.kubelet.state.statuses.getPodStatus(uid) ?? {};
  state.answer = () => ({ is: 'error' });
  await node.restartKubelet();
  node.api({ ...web, status });
  const observed = new Set<string | undefined>();
  node.kubelet.state.statuses.onChange(({ after }) => observed.add(`${after.containerStatuses?.[0]?.ready}`));
  await node.pass(30_000);
  assert.deepEqual([...observed], ['true']);
  assert.equal(containerOf(node, uid)?.restartCount, 0);
});

it('after a kubelet restart a sidecar that had started does not block the main container, even if its startup probe has no result', async () => {
  const { node, state } = await probedNode();
  await using _end = node;
  const sidecar = { name: 'side', image: images.present, command: ['app', '{}'], restartPolicy: 'Always' };
  const spec = { initContainers: [{ ...sidecar, startupProbe: { ...probe, periodSeconds: 600 } }] };
  const uid = await node.runsStatic('web', manifest('web', { runMs: 20_000, exitCode: 1, spec }));
  await node.until('the main container runs', () => node.running(uid).includes('app'), 700_000);
  state.answer = () => ({ is: 'error' });
  await node.restartKubelet(() => node.pass(25_000));
  await node.until('it is started again', () => node.running(uid).includes('app'), 30_000);
  assert.equal(
    node.of(uid, 'container-started').filter((each) => 'name' in each && each.name === 'side').length,
    1,
  );
});

it('a created container that is not started yet does not fail its probes', async () => {
  const { node } = await probedNode();
  await using _end = node;
  const command = ['app', JSON.stringify({ runMs: 15_000 })];
  const lifecycle = { postStart: { sleep: { seconds: 2 } } };
  const often = { ...probe, periodSeconds: 1 };
  const uid = await node.runsStatic('web', probed({ command, livenessProbe: often, lifecycle }));
  await node.pass(40_000);
  assert.ok(!node.calls.some(({ method }) => method === 'stopContainer'), node.events(uid).join());
});
