import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodUid } from '../../src/pods/index.ts';
import { manifest } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';
import { manifestPath } from './manifests.ts';
import { images } from './sketch.ts';

const url = 'http://manifests.example/pods';
const broken = '{"kind": "Pod"';

/** The time and the timeout of each StopContainer call. */
function stops(node: RaceNode): readonly (readonly [number, number])[] {
  return node.calls
    .filter(({ method }) => method === 'stopContainer')
    .map(({ request, atMs }) => [atMs, Number(request['timeout'])]);
}

describe('kubelet restart during a pod termination', () => {
  const stubborn = { graceSeconds: 30, onTerm: 'ignore' } as const;

  it('a restarted kubelet continues with the remaining grace of a pod whose manifest was removed', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', stubborn));
    node.remove('web');
    await node.until('its stop is requested', () => stops(node).length === 1);
    const [first] = stops(node);
    await node.pass(10_000);
    await node.restartKubelet();
    await node.until('its stop is requested again', () => stops(node).length === 2);
    const [, second] = stops(node);
    assert.ok(first !== undefined && second !== undefined);
    const [endMs, againMs] = [first, second].map(([atMs, seconds]) => atMs + seconds * 1_000);
    assert.ok(Math.abs((againMs ?? 0) - (endMs ?? 0)) <= 1_000, `${endMs} became ${againMs}`);
    await node.becomesClean(30_000);
    assert.deepEqual(node.running(uid), []);
  });

  it('a restarted kubelet completes the termination of a pod that is desired again, and restarts the pod afterwards', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', stubborn);
    const uid = await node.runsStatic('web', text);
    node.remove('web');
    await node.until('its stop is requested', () => stops(node).length === 1);
    await node.pass(10_000);
    await node.restartKubelet(() => node.write('web', text));
    await node.until('the pod has terminated', () => node.of(uid, 'container-exited').length === 1, 25_000);
    await node.until('the pod runs again', () => node.of(uid, 'container-started').length === 2, 10_000);
    assert.ok(Number(stops(node).at(-1)?.[1]) < 30);
    await node.restartKubelet();
    await node.pass(60_000);
    assert.equal(
      node.of(uid, 'container-exited').length,
      1,
      'the pod stays terminated, for every later kubelet too',
    );
  });
});

it('a kubelet restart does not reset the crash back-off of a container', async () => {
  await using node = await RaceNode.start({ settings: { maxRestartWaitMs: 300_000 } });
  const uid = await node.runsStatic('crash', manifest('crash', { runMs: 10, exitCode: 1 }));
  const starts = () => node.of(uid, 'container-started').length;
  await node.until('it waits for 40 s', () => starts() === 4, 120_000);
  await node.pass(2_000);
  await node.restartKubelet();
  await node.pass(30_000);
  assert.equal(starts(), 4);
  await node.until('its back-off is over', () => starts() === 5, 30_000);
  await node.pass(5_000);
  node.world.clock.jumpWall(-3_600_000);
  await node.restartKubelet();
  const waitedMs = await node.until('it starts though the clock was set back', () => starts() === 6, 200_000);
  assert.ok(waitedMs > 60_000 && waitedMs <= 125_000, `${waitedMs}`);
});

it('init containers do not run again in their sandbox after the runtime lost them', async () => {
  await using node = await RaceNode.start();
  const init = { name: 'setup', image: images.present, command: ['app', '{"runMs":10,"exitCode":0}'] };
  const text = manifest('web', { image: images.missing, spec: { initContainers: [init] } });
  node.write('web', text);
  const uid = await node.uidOf('web');
  await node.until('the pod is initialized', () => node.of(uid, 'container-exited').length === 1);
  await node.pass(5_000);
  const cri = node.behindTheBack();
  const [old] = node.of(uid, 'container-exited');
  assert.ok(old !== undefined && 'id' in old);
  await node.settled(cri.removeContainer({ containerId: old.id }, new AbortController().signal));
  await node.restartKubelet();
  await node.pass(60_000);
  assert.equal(node.of(uid, 'container-started').length, 1);
});

it('a running pod is not rejected when a restarted kubelet has a lower pod limit', async () => {
  const settings = { maxPods: 2 };
  await using node = await RaceNode.start({ settings });
  const uids = [await node.runsStatic('a', manifest('a')), await node.runsStatic('b', manifest('b'))];
  settings.maxPods = 1;
  await node.restartKubelet(() => node.write('c', manifest('c')));
  await node.pass(30_000);
  for (const uid of uids) {
    assert.equal(node.phase(uid), 'Running');
    assert.equal(node.of(uid, 'container-started', 'container-exited').length, 1);
  }
  assert.equal(node.phase(await node.uidOf('c')), 'Failed');
});

describe('kubelet with a source that never responds', () => {
  it('with a pod source that never responds, a restarted kubelet terminates and cleans up pods removed from another source, and does not touch the remaining pods', async () => {
    await using node = await RaceNode.start({ settings: { staticPodUrl: url } });
    const [gone, stays] = [
      await node.runsStatic('gone', manifest('gone')),
      await node.runsStatic('stays', manifest('stays')),
    ];
    await node.restartKubelet(() => node.remove('gone'));
    await node.becomesClean(20_000, stays);
    assert.deepEqual(node.running(gone), []);
    assert.deepEqual(node.running(stays), ['app']);
    assert.deepEqual(node.kubelet.state.config.readiness(), [
      { source: 'file', ready: true },
      { source: 'http', ready: false },
    ]);
  });

  it('a pod with an invalid checkpoint is not touched until all sources are ready', async () => {
    const settings = { staticPodUrl: url };
    await using node = await RaceNode.start({ settings });
    const uid = await node.runsStatic('web', manifest('web'));
    const notes = `/var/lib/kubelet/pods/${uid}/kubeling.json`;
    await node.restartKubelet(() => {
      node.remove('web');
      node.world.files.write(notes, '{"half');
    });
    await node.pass(60_000);
    assert.deepEqual(node.running(uid), ['app']);
    assert.equal(node.logged('Ignored invalid pod checkpoint'), 1);
    settings.staticPodUrl = '';
    await node.restartKubelet();
    await node.becomesClean(20_000);
  });

  it('restored pods of the unresponsive source stay unchanged', async () => {
    let response: string | undefined = manifest('far');
    const httpGet = async () => {
      if (response === undefined) throw new Error('connect ECONNREFUSED');
      return { status: 200, body: Buffer.from(response) };
    };
    await using node = await RaceNode.start({ settings: { staticPodUrl: url }, machine: { httpGet } });
    const uid = await node.uidOf('far');
    await node.runs(uid);
    await node.pass(2_000);
    response = undefined;
    await node.restartKubelet();
    await node.pass(60_000);
    assert.equal(node.of(uid, 'container-started', 'container-exited').length, 1);
    assert.equal(node.phase(uid), 'Running', 'the pod is synced as before');
  });
});

it('a pod whose manifest is invalid when the kubelet starts keeps running', async () => {
  await using node = await RaceNode.start();
  const uid = await node.runsStatic('web', manifest('web'));
  await node.restartKubelet(() => node.write('web', broken));
  await node.pass(30_000);
  assert.equal(node.of(uid, 'container-started', 'container-exited').length, 1);
  assert.equal(node.phase(uid), 'Running');
  assert.ok(node.kubelet.endpoints.sourceProblems().some(({ path }) => path === manifestPath('web')));
  node.remove('web');
  await node.becomesClean(20_000);
  assert.deepEqual(
    node.world.files.paths().filter((path) => path.includes('last-good')),
    [],
  );
});

describe('terminal status of a static pod', () => {
  const deadline = { spec: { activeDeadlineSeconds: 4 } };

  /** Removes all containers and sandboxes of the pod, like a runtime that lost its state. */
  async function forget(node: RaceNode, uid: string): Promise<void> {
    const cri = node.behindTheBack();
    const { signal } = new AbortController();
    const sandboxes = node.world.runtime.sandboxes().filter(({ podUid }) => podUid === uid);
    for (const { id: podSandboxId } of sandboxes)
      await node.settled(cri.removePodSandbox({ podSandboxId }, signal));
  }

  it('the terminal status is the same for every later kubelet, and the active deadline does not restart', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', deadline));
    await node.until('its deadline is over', () => node.of(uid, 'container-exited').length === 1);
    await node.pass(5_000);
    const before = node.kubelet.state.statuses.getPodStatus(uid);
    assert.deepEqual([before?.phase, before?.reason], ['Failed', 'DeadlineExceeded']);
    for (const times of [1, 2]) {
      await node.restartKubelet(() => (times === 2 ? forget(node, uid) : undefined));
      await node.pass(60_000);
      const after = node.kubelet.state.statuses.getPodStatus(uid);
      const { startTime, phase, reason, message } = after ?? {};
      assert.deepEqual({ ...before, startTime, phase, reason, message }, before);
      const since = (status: typeof before, type: string) =>
        status?.conditions?.find((each) => each.type === type)?.lastTransitionTime;
      for (const type of ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady'])
        assert.equal(since(after, type), since(before, type), type);
    }
    assert.equal(node.of(uid, 'container-started').length, 1);
    assert.equal(node.of(uid, 'sandbox-started').length, 1);
  });

  it('the terminal status does not depend on when the kubelet that terminated the pod is killed', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', { ...deadline, graceSeconds: 30, onTerm: 'ignore' });
    const uid = await node.runsStatic('web', text);
    await node.until('its stop is requested', () => stops(node).length === 1);
    await node.pass(10_000);
    await node.restartKubelet();
    await node.until('the pod has terminated', () => node.of(uid, 'container-exited').length === 1, 25_000);
    await node.pass(60_000);
    assert.equal(node.phase(uid), 'Failed');
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('the terminal status is written when the active deadline expires, whichever kubelet observes it', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', { spec: { activeDeadlineSeconds: 30 } }));
    const startTime = node.kubelet.state.statuses.getPodStatus(uid)?.startTime;
    await node.pass(20_000);
    await node.restartKubelet();
    assert.equal(node.kubelet.state.statuses.getPodStatus(uid)?.startTime, startTime);
    await node.until('its deadline is over', () => node.of(uid, 'container-exited').length === 1, 12_000);
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('the terminal status is restored after the runtime lost the containers', async () => {
    await using node = await RaceNode.start();
    const once = { restartPolicy: 'Never', runMs: 100, exitCode: 0 } as const;
    node.write('once', manifest('once', once));
    const uid = await node.uidOf('once');
    await node.until('it has completed', () => node.phase(uid) === 'Succeeded');
    await node.pass(5_000);
    await node.restartKubelet(() => forget(node, uid));
    await node.pass(60_000);
    assert.equal(node.phase(uid), 'Succeeded');
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('a rejected pod keeps its status until its manifest is removed and added again', async () => {
    const settings = { maxPods: 1 };
    await using node = await RaceNode.start({ settings });
    await node.runsStatic('a', manifest('a'));
    node.write('b', manifest('b'));
    const uid = await node.uidOf('b');
    await node.pass(5_000);
    settings.maxPods = 2;
    await node.restartKubelet();
    await node.pass(30_000);
    assert.deepEqual([node.phase(uid), node.running(uid)], ['Failed', []]);
    assert.equal(node.kubelet.state.statuses.getPodStatus(uid)?.reason, 'UnexpectedAdmissionError');
    node.remove('b');
    await node.pass(1_000);
    node.write('b', manifest('b'));
    await node.runs(uid);
  });

  it('the terminal status is dropped when the manifest is removed and added again, in the same kubelet and the next', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', deadline);
    const uid = await node.runsStatic('web', text);
    await node.until('its deadline is over', () => node.phase(uid) === 'Failed');
    await node.pass(3_000);
    node.remove('web');
    await node.pass(300);
    node.write('web', text);
    await node.until('it runs again', () => node.of(uid, 'container-started').length === 2);
    await node.restartKubelet();
    await node.pass(30_000);
    assert.equal(node.of(uid, 'container-started').length, 2);
    await node.restartKubelet(() => node.remove('web'));
    node.write('web', text);
    await node.until('it runs once more', () => node.of(uid, 'container-started').length === 3);
  });
});

it('a container that an edit renames terminates within its grace before the new container starts', async () => {
  await using node = await RaceNode.start();
  const metadata = { uid: '0f0e0d0c-0b0a-4908-8706-050403020100' as PodUid };
  const shape = { metadata, graceSeconds: 10, onTerm: 1_500 } as const;
  const uid = await node.runsStatic('web', manifest('web', { ...shape, containers: ['old'] }));
  node.write('web', manifest('web', { ...shape, containers: ['new'] }));
  await node.until('the new one runs', () => node.running(uid).includes('new'));
  assert.deepEqual(node.running(uid), ['new']);
  assert.deepEqual(
    stops(node).map(([, seconds]) => seconds),
    [10],
  );
  const names = node
    .of(uid, 'container-started', 'container-exited')
    .map((each) => [each.kind, 'name' in each && each.name]);
  assert.deepEqual(names, [
    ['container-started', 'old'],
    ['container-exited', 'old'],
    ['container-started', 'new'],
  ]);
  assert.deepEqual(
    node.events(uid).filter((reason) => reason === 'FailedKillPod'),
    [],
  );
});

it('a start aborted by a kubelet restart does not fail a pod with restart policy Never', async () => {
  await using node = await RaceNode.start();
  const text = manifest('once', { restartPolicy: 'Never', containers: ['first', 'second'] });
  node.write('once', text);
  const startsAsked = () => node.calls.filter(({ method }) => method === 'startContainer').length;
  await node.until('the second is being started', () => startsAsked() === 2);
  await node.pass(3);
  await node.restartKubelet();
  const uid = await node.uidOf('once');
  assert.equal(node.of(uid, 'container-start-failed').length, 1);
  await node.until('both run', () => node.running(uid).length === 2);
  await node.pass(60_000);
  assert.equal(node.kubelet.state.statuses.getPodStatus(uid)?.phase, 'Running');
});
