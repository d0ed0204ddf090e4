import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { eventually, KubelingNode, type NodePod } from '../kubeling-node.ts';

const graceMs = 20_000;

function podOf(name: string, script: string, spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: graceMs / 1_000,
      containers: [{ name: 'main', image: busyboxImageName, command: ['sh', '-c', script] }],
      ...spec,
    },
  };
}

/** Waits in real time until the given time. */
function until(atMs: number): Promise<true> {
  return eventually('the time to come', async () => (performance.now() >= atMs ? true : undefined));
}

describe('state restored after kubeling is killed', { timeout: 180_000 }, () => {
  let node: KubelingNode;

  before(async () => {
    node = await KubelingNode.open();
  });

  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });

  const idsOf = async (name: string) => (await node.containersOf(name)).map(({ id }) => id).toSorted();
  const notesOf = async (uid: string) =>
    JSON.parse(await readFile(join(node.dataDir, 'kubelet', 'pods', uid, 'kubeling.json'), 'utf8'));

  it('a restarted kubeling runs a pod whose manifest became invalid before the restart', async () => {
    await node.put('web.yaml', podOf('web', 'trap "exit 0" TERM; while true; do sleep 0.1; done'));
    const { metadata } = await node.running('web');
    assert.equal((await notesOf(metadata.uid)).source, 'file');
    const ids = await idsOf('web');
    await node.end('SIGKILL');
    await node.put('web.yaml', 'kind: Pod\nmetadata: [');
    await node.start();
    await node.running('web');
    await eventually('the mistake to be reported', async () =>
      (await node.command('explain', 'web')).includes('web.yaml:2') ? true : undefined,
    );
    assert.deepEqual(await idsOf('web'), ids);
    await node.take('web.yaml');
    await eventually('nothing to be left of it', async () =>
      (await idsOf('web')).length === 0 ? true : undefined,
    );
  });

  it('a restarted kubeling continues the back-off of a crashing container', async () => {
    await node.put('crash.yaml', podOf('crash', 'exit 3'));
    const restarts = async () => (await node.pod('crash'))?.status.containerStatuses?.[0]?.restartCount ?? 0;
    const { metadata } = await node.podIs(
      'crash',
      'waiting for 20 s',
      ({ containerStatuses = [] }) =>
        containerStatuses[0]?.state?.waiting?.message?.startsWith('back-off 20s') === true,
    );
    const waitsSinceMs = performance.now();
    assert.equal(Object.keys((await notesOf(metadata.uid)).restarts).length, 1);
    const before = await restarts();
    await node.end('SIGKILL');
    await node.start();
    await node.podIs(
      'crash',
      'waiting again',
      ({ containerStatuses = [] }) =>
        containerStatuses[0]?.state?.waiting?.message?.startsWith('back-off 20s') === true,
    );
    assert.equal(await restarts(), before);
    await eventually('it to be restarted', async () => ((await restarts()) > before ? true : undefined));
    assert.ok(performance.now() - waitsSinceMs > 12_000, 'the full back-off');
    await node.take('crash.yaml');
  });

  it('a restarted kubeling keeps a pod past its active deadline failed', async () => {
    const script = 'trap "exit 0" TERM; while true; do sleep 0.1; done';
    await node.put('brief.yaml', podOf('brief', script, { activeDeadlineSeconds: 4 }));
    const isOver = ({ phase, reason }: NodePod['status']) =>
      phase === 'Failed' && reason === 'DeadlineExceeded';
    const { status: before } = await node.podIs('brief', 'over', isOver);
    const ids = await idsOf('brief');
    await node.end('SIGKILL');
    await node.start();
    const { status: after } = await node.podIs('brief', 'over', isOver);
    assert.equal(after.startTime, before.startTime);
    await until(performance.now() + 3_000);
    assert.deepEqual(await idsOf('brief'), ids);
    await node.take('brief.yaml');
    await eventually('nothing to be left of it', async () =>
      (await idsOf('brief')).length === 0 ? true : undefined,
    );
  });

  it('a restarted kubeling continues the grace period of a deleted pod', async () => {
    await node.put('slow.yaml', podOf('slow', 'trap "" TERM; while true; do sleep 0.1; done'));
    const { metadata } = await node.running('slow');
    const removedMs = performance.now();
    await node.take('slow.yaml');
    await eventually('it to receive SIGTERM', async () =>
      (await notesOf(metadata.uid)).termination === undefined ? undefined : true,
    );
    await until(removedMs + 10_000);
    await node.end('SIGKILL');
    await node.start();
    const readyMs = performance.now();
    await eventually('nothing to be left of it', async () =>
      (await idsOf('slow')).length === 0 ? true : undefined,
    );
    const goneMs = performance.now();
    assert.ok(goneMs - removedMs > graceMs - 2_000, `not shortened: ${goneMs - removedMs}`);
    assert.ok(goneMs - readyMs < graceMs - 2_000, `not restarted: ${goneMs - readyMs}`);
  });
});
