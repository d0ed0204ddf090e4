import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manifest } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';
import { images, manifestPath } from './manifests.ts';

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
  await node.until('its wait is over', () => starts() === 5, 20_000);
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
    assert.deepEqual(node.kubelet.config.readiness(), [
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
    assert.equal(node.logged('The notes on a pod cannot be used'), 1);
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
  assert.ok(node.kubelet.sourceProblems().some(({ path }) => path === manifestPath('web')));
  node.remove('web');
  await node.becomesClean(20_000);
  assert.deepEqual(
    node.world.files.paths().filter((path) => path.includes('last-good')),
    [],
  );
});
