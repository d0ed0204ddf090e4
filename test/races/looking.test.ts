import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodUid } from '../../src/pods/index.ts';
import { scriptedFaults } from '../simulator/index.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

const deaf = scriptedFaults({ events: [{ topic: '*', fault: { kind: 'drop' } }] });

/** Kills the container process of the pod. */
function crash(node: RaceNode, uid: PodUid): void {
  const [victim] = node.world.runtime.runningContainers().filter(({ podUid }) => podUid === uid);
  assert.ok(victim !== undefined, `${uid} does not run`);
  node.world.runtime.crashContainer(victim.id, 3);
}

async function startedAgain(node: RaceNode, uid: PodUid, limitMs: number): Promise<number> {
  const before = node.of(uid, 'container-started').length;
  return await node.until(
    `${uid} runs again`,
    () => node.of(uid, 'container-started').length > before,
    limitMs,
  );
}

it("container lives and is GC'd within one relist: the next sync of the pod starts the container again", async () => {
  await using node = await RaceNode.start();
  node.world.setFaults(deaf, 'no event arrives');
  const stolen = Promise.withResolvers<string>();
  const listen = node.world.runtime.trace.subscribe((entry) => {
    if (entry.kind === 'container-started') stolen.resolve(entry.id);
  });
  // No list call returns until the container is completely removed.
  const looks = Promise.withResolvers<void>();
  let hold = false;
  node.toll = { before: ({ method }) => (hold && method.startsWith('list') ? looks.promise : undefined) };
  const signal = AbortSignal.timeout(60_000);
  node.write('web', manifest('web'));
  const id = await node.settled(stolen.promise);
  hold = true;
  listen[Symbol.dispose]();
  node.world.runtime.crashContainer(id);
  const thief = node.behindTheBack();
  await node.settled(thief.stopContainer({ containerId: id, timeout: 0n }, signal));
  await node.settled(thief.removeContainer({ containerId: id }, signal));
  thief.close();
  hold = false;
  looks.resolve();
  const uid = await node.uidOf('web');
  assert.deepEqual(node.running(uid), []);
  await startedAgain(node, uid, 95_000);
});

it('relist that started before sync end: the pod worker waits for a newer relist', async () => {
  await using node = await RaceNode.start();
  node.world.setFaults(deaf, 'no event arrives');
  await node.pass(5_000);
  // List calls sent during the sync return late; list calls sent after it do not return until the
  // end of the test.
  const [early, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let phase: 'before' | 'syncing' | 'synced' = 'before';
  let held = 0;
  node.toll = {
    after: ({ method }) => {
      if (method === 'runPodSandbox') phase = 'syncing';
      if (!method.startsWith('list') || phase === 'before') return undefined;
      if (phase === 'syncing') held++;
      return phase === 'syncing' ? early.promise : undefined;
    },
    before: ({ method }) => {
      if (method === 'runPodSandbox') phase = 'syncing';
      return phase === 'synced' && method.startsWith('list') ? late.promise : undefined;
    },
  };
  node.world.setFaults(
    scriptedFaults({
      events: [{ topic: '*', fault: { kind: 'drop' } }],
      calls: [{ method: 'createContainer', fault: { kind: 'delay', ms: 3_000 } }],
    }),
    'slow containers',
  );
  node.write('web', manifest('web'));
  await node.until('a container starts', () => node.calls.some(({ method }) => method === 'startContainer'));
  phase = 'synced';
  const uid = await node.uidOf('web');
  await node.pass(1_000);
  assert.ok(held > 0, 'no relist began during the sync');
  early.resolve();
  const pod = node.podOf('web');
  node.kubelet.control.workers.updatePod({ updateType: 'sync', pod });
  await node.pass(5_000);
  assert.equal(node.kubelet.runtime.pleg.cache.isAwaited(uid), true);
  assert.equal(node.calls.filter(({ method }) => method === 'createContainer').length, 1);
  late.resolve();
  await node.pass(20_000);
  assert.equal(node.calls.filter(({ method }) => method === 'createContainer').length, 1);
  assert.deepEqual(node.running(uid), ['app']);
});

it('PLEG queue full: exits that it could not report are still handled', async () => {
  await using node = await RaceNode.start();
  const noisy = await node.runsStatic('noisy', manifest('noisy'));
  const quiet = await node.runsStatic('quiet', manifest('quiet'));
  // The sync loop is blocked and takes no events, so the event queue fills.
  const stuck = Promise.withResolvers<void>();
  const next = node.kubelet.runtime.pleg.nextEvent.bind(node.kubelet.runtime.pleg);
  node.kubelet.runtime.pleg.nextEvent = async (signal) => {
    await stuck.promise;
    return await next(signal);
  };
  for (let event = 0; event < 1_100; event++) {
    node.kubelet.runtime.pleg.requestReinspect(noisy);
    await node.until('it was looked at', () => node.kubelet.runtime.pleg.remembered.looks === 0);
    await node.pass(15);
  }
  crash(node, quiet);
  await node.pass(100);
  const exposed = (await node.world.life?.metrics.expose(AbortSignal.timeout(5_000))) ?? '';
  const discarded = Number(/^kubelet_pleg_discard_events (\d+)$/m.exec(exposed)?.[1]);
  assert.ok(discarded >= 50, `${discarded} events were discarded`);
  assert.deepEqual(node.running(quiet), []);
  stuck.resolve();
  await startedAgain(node, quiet, 95_000);
  await node.pass(1_000);
  assert.equal(node.phase(quiet), 'Running');
  assert.equal(node.of(noisy, 'container-started').length, 1);
});

it('on-demand relist of a vanished pod: the missing pod is logged, and the next relist of all pods restarts it', async () => {
  await using node = await RaceNode.start();
  const uid = await node.runsStatic('web', manifest('web'));
  await node.until('events are relied on', () => node.kubelet.runtime.pleg.eventTrust === 'trusted');
  node.world.setFaults(deaf, 'no event arrives');
  const [sandbox] = node.world.runtime.sandboxes();
  const thief = node.behindTheBack();
  const signal = AbortSignal.timeout(60_000);
  await node.settled(thief.stopPodSandbox({ podSandboxId: sandbox?.id ?? '' }, signal));
  await node.settled(thief.removePodSandbox({ podSandboxId: sandbox?.id ?? '' }, signal));
  thief.close();
  assert.equal(node.kubelet.runtime.pleg.cache.get(uid).containers[0]?.state, 'running');
  node.kubelet.runtime.pleg.requestRelist(uid);
  await node.until(
    'it is gone from the cache',
    () => node.kubelet.runtime.pleg.cache.get(uid).sandboxes.length === 0,
    1_000,
  );
  assert.equal(node.logged('Pod is missing in the runtime, waiting for a relist of all pods'), 1);
  await startedAgain(node, uid, 95_000);
});

it('inspect fails for one pod repeatedly: others advance; its worker records `FailedSync` and retries', async () => {
  await using node = await RaceNode.start();
  const [sick, well] = [
    await node.runsStatic('sick', manifest('sick')),
    await node.runsStatic('well', manifest('well')),
  ];
  const own = new Set(
    node.world.runtime.containers().flatMap((each) => (each.podUid === sick ? [each.id] : [])),
  );
  const matches = (request: unknown) => own.has((request as { containerId: string }).containerId);
  const fault = { kind: 'error', code: 'UNKNOWN', message: 'cannot inspect' } as const;
  node.world.setFaults(scriptedFaults({ calls: [{ method: 'containerStatus', matches, fault }] }), 'sick');
  crash(node, sick);
  crash(node, well);
  assert.ok((await startedAgain(node, well, 5_000)) < 1_000);
  await node.until('its worker is told', () => node.events(sick).includes('FailedSync'), 95_000);
  await node.pass(30_000);
  assert.deepEqual(node.running(sick), []);
  assert.equal(node.kubelet.runtime.pleg.problem(), undefined);
  node.world.setFaults(undefined, 'none');
  await startedAgain(node, sick, 16_000);
});

it('wall clock jumps +-1h: no stuck or skipped sync', async () => {
  await using node = await RaceNode.start();
  const steady = await node.runsStatic('steady', manifest('steady'));
  const looping = await node.runsStatic('looping', manifest('looping', { runMs: 2_000, exitCode: 1 }));
  const { workers } = node.kubelet.control;
  const synced = new Set<PodUid>();
  const update = workers.updatePod.bind(workers);
  workers.updatePod = (options) => {
    if (options.updateType === 'sync' && options.pod !== undefined) synced.add(options.pod.metadata.uid);
    update(options);
  };
  for (const jumpMs of [3_600_000, -3_600_000, -3_600_000, 3_600_000]) {
    node.world.clock.jumpWall(jumpMs);
    crash(node, steady);
    // The longest wait is the maximum crash back-off, which is one minute in this test.
    await startedAgain(node, steady, 65_000);
    await startedAgain(node, looping, 95_000);
    const name = `new${node.nowMs}`.replace('.', '-');
    node.write(name, manifest(name));
    const begun = await node.uidOf(name);
    assert.ok((await node.runs(begun, 5_000)) < 5_000);
    synced.clear();
    await node.until(
      'all are synced again',
      () => node.kubelet.state.pods.getPods().every(({ metadata }) => synced.has(metadata.uid)),
      92_000,
    );
    assert.equal(node.phase(steady), 'Running');
    assert.equal(node.kubelet.control.problems().length, 0);
  }
});
