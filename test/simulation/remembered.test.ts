import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodUid } from '../../src/pods/index.ts';
import { manifest } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';
import { manifestPath } from './manifests.ts';
import { images } from './sketch.ts';

const url = 'http://manifests.example/pods';
const broken = '{"kind": "Pod"';

/** When each stop of a container was asked for, and how long it was given. */
function stops(node: RaceNode): readonly (readonly [number, number])[] {
  return node.calls
    .filter(({ method }) => method === 'stopContainer')
    .map(({ request, atMs }) => [atMs, Number(request['timeout'])]);
}

describe('a restart of the kubelet in the middle of a kill', () => {
  const stubborn = { graceSeconds: 30, onTerm: 'ignore' } as const;

  it('goes on with the grace that is left of a pod whose manifest is gone', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', stubborn));
    node.remove('web');
    await node.until('it is told to end', () => stops(node).length === 1);
    const [first] = stops(node);
    await node.pass(10_000);
    await node.restartKubelet();
    await node.until('it is told again', () => stops(node).length === 2);
    const [, second] = stops(node);
    assert.ok(first !== undefined && second !== undefined);
    const [endMs, againMs] = [first, second].map(([atMs, seconds]) => atMs + seconds * 1_000);
    assert.ok(Math.abs((againMs ?? 0) - (endMs ?? 0)) <= 1_000, `${endMs} became ${againMs}`);
    await node.becomesClean(30_000);
    assert.deepEqual(node.running(uid), []);
  });

  it('goes on with it of a pod that is wanted again, and begins it anew then', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', stubborn);
    const uid = await node.runsStatic('web', text);
    node.remove('web');
    await node.until('it is told to end', () => stops(node).length === 1);
    await node.pass(10_000);
    await node.restartKubelet(() => node.write('web', text));
    await node.until('it has ended', () => node.of(uid, 'container-exited').length === 1, 25_000);
    await node.until('it runs anew', () => node.of(uid, 'container-started').length === 2, 10_000);
    assert.ok(Number(stops(node).at(-1)?.[1]) < 30);
    await node.restartKubelet();
    await node.pass(60_000);
    assert.equal(node.of(uid, 'container-exited').length, 1, 'it is over, for every later kubelet too');
  });
});

it('a restart of the kubelet is no way around the wait of a container that crashes again and again', async () => {
  await using node = await RaceNode.start({ settings: { maxRestartWaitMs: 300_000 } });
  const uid = await node.runsStatic('crash', manifest('crash', { runMs: 10, exitCode: 1 }));
  const starts = () => node.of(uid, 'container-started').length;
  await node.until('it waits for 40 s', () => starts() === 4, 120_000);
  await node.pass(2_000);
  await node.restartKubelet();
  await node.pass(30_000);
  assert.equal(starts(), 4);
  await node.until('its wait is over', () => starts() === 5, 30_000);
  await node.pass(5_000);
  node.world.clock.jumpWall(-3_600_000);
  await node.restartKubelet();
  const waitedMs = await node.until('it starts though the clock was set back', () => starts() === 6, 200_000);
  assert.ok(waitedMs > 60_000 && waitedMs <= 125_000, `${waitedMs}`);
});

it('init containers do not run again in their sandbox when the runtime has forgotten them', async () => {
  await using node = await RaceNode.start();
  const init = { name: 'setup', image: images.present, command: ['app', '{"runMs":10,"exitCode":0}'] };
  const text = manifest('web', { image: images.missing, spec: { initContainers: [init] } });
  node.write('web', text);
  const uid = await node.uidOf('web');
  await node.until('it is set up', () => node.of(uid, 'container-exited').length === 1);
  await node.pass(5_000);
  const cri = node.behindTheBack();
  const [old] = node.of(uid, 'container-exited');
  assert.ok(old !== undefined && 'id' in old);
  await node.settled(cri.removeContainer({ containerId: old.id }, new AbortController().signal));
  await node.restartKubelet();
  await node.pass(60_000);
  assert.equal(node.of(uid, 'container-started').length, 1);
});

it('a pod that lives here is not refused when fewer pods may run here', async () => {
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

describe('a kubelet of which one source never answers', () => {
  it('ends what another source has no more, cleans up after it, and leaves the rest alone', async () => {
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

  it('leaves what nobody can attribute, until all have spoken', async () => {
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

  it('keeps the pods of that source from before the restart as they are', async () => {
    let answer: string | undefined = manifest('far');
    const httpGet = async () => {
      if (answer === undefined) throw new Error('connect ECONNREFUSED');
      return { status: 200, body: Buffer.from(answer) };
    };
    await using node = await RaceNode.start({ settings: { staticPodUrl: url }, machine: { httpGet } });
    const uid = await node.uidOf('far');
    await node.runs(uid);
    await node.pass(2_000);
    answer = undefined;
    await node.restartKubelet();
    await node.pass(60_000);
    assert.equal(node.of(uid, 'container-started', 'container-exited').length, 1);
    assert.equal(node.phase(uid), 'Running', 'it is looked after as before');
  });
});

it('a manifest that is broken when the kubelet starts keeps its pod', async () => {
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

describe('how a static pod has ended', () => {
  const deadline = { spec: { activeDeadlineSeconds: 4 } };

  /** Forgets all the pod's containers and sandboxes, as a runtime does whose state is lost. */
  async function forget(node: RaceNode, uid: string): Promise<void> {
    const cri = node.behindTheBack();
    const { signal } = new AbortController();
    const sandboxes = node.world.runtime.sandboxes().filter(({ podUid }) => podUid === uid);
    for (const { id: podSandboxId } of sandboxes)
      await node.settled(cri.removePodSandbox({ podSandboxId }, signal));
  }

  it('is the same for every later kubelet, and gives no deadline twice', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', deadline));
    await node.until('its time is over', () => node.of(uid, 'container-exited').length === 1);
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
        status?.conditions?.find((one) => one.type === type)?.lastTransitionTime;
      for (const type of ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady'])
        assert.equal(since(after, type), since(before, type), type);
    }
    assert.equal(node.of(uid, 'container-started').length, 1);
    assert.equal(node.of(uid, 'sandbox-started').length, 1);
  });

  it('does not depend on when the kubelet that ended it is killed', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', { ...deadline, graceSeconds: 30, onTerm: 'ignore' });
    const uid = await node.runsStatic('web', text);
    await node.until('it is told to end', () => stops(node).length === 1);
    await node.pass(10_000);
    await node.restartKubelet();
    await node.until('it has ended', () => node.of(uid, 'container-exited').length === 1, 25_000);
    await node.pass(60_000);
    assert.equal(node.phase(uid), 'Failed');
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('comes when its deadline is over, whichever kubelet sees that', async () => {
    await using node = await RaceNode.start();
    const uid = await node.runsStatic('web', manifest('web', { spec: { activeDeadlineSeconds: 30 } }));
    const startTime = node.kubelet.state.statuses.getPodStatus(uid)?.startTime;
    await node.pass(20_000);
    await node.restartKubelet();
    assert.equal(node.kubelet.state.statuses.getPodStatus(uid)?.startTime, startTime);
    await node.until('its time is over', () => node.of(uid, 'container-exited').length === 1, 12_000);
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('is known also when the runtime has forgotten it', async () => {
    await using node = await RaceNode.start();
    const once = { restartPolicy: 'Never', runMs: 100, exitCode: 0 } as const;
    node.write('once', manifest('once', once));
    const uid = await node.uidOf('once');
    await node.until('it is done', () => node.phase(uid) === 'Succeeded');
    await node.pass(5_000);
    await node.restartKubelet(() => forget(node, uid));
    await node.pass(60_000);
    assert.equal(node.phase(uid), 'Succeeded');
    assert.equal(node.of(uid, 'container-started').length, 1);
  });

  it('holds for one that was refused, until its manifest goes and comes again', async () => {
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

  it('is over when its manifest comes again, in this kubelet and the next', async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', deadline);
    const uid = await node.runsStatic('web', text);
    await node.until('its time is over', () => node.phase(uid) === 'Failed');
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

it('a container that an edit renames ends with its grace before the new one starts', async () => {
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
    .map((one) => [one.kind, 'name' in one && one.name]);
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

it('a start that was given up with the kubelet that asked for it is no failure of a pod that is not restarted', async () => {
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
