import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { logindShutdowns } from '../../src/node/shutdown/index.ts';
import { scratchFolder } from '../fakes/scratch-folder.ts';
import { eventually } from '../kubeling-node.ts';
import { busSkipReason, openBus } from '../logind/bus.ts';
import { StandInLogind } from '../logind/stand-in.ts';
import { ApiNode } from './api-node.ts';
import { skipReason } from './containerd-fixture.ts';

/** A container that takes this many seconds to exit after SIGTERM and records when it exited. */
const endsAfter = (seconds: number) =>
  `trap 'sleep ${seconds}; cat /proc/uptime > /shared/told; exit 0' TERM; while true; do sleep 0.05; done`;

describe('node shutdown', { skip: skipReason() || busSkipReason(), timeout: 180_000 }, () => {
  const parts = new AsyncDisposableStack();
  let node: ApiNode;
  let logind: StandInLogind;

  before(async () => {
    const { path: directory } = parts.use(scratchFolder('klg-logind-'));
    const { path: busPath } = parts.use(await openBus(directory));
    logind = parts.use(await StandInLogind.open({ busPath, directory, delaySeconds: 5 }));
    const shutdownGroups = [
      { priority: 0, seconds: 30 },
      { priority: 1_000, seconds: 30 },
    ];
    const shutdowns = logindShutdowns({ clock: realClock(), busPath, configDirectory: directory });
    node = parts.use(await ApiNode.open({ settings: { shutdownGroups }, machine: { shutdowns } }));
  });
  after(() => parts.disposeAsync());

  const locks = (count: number) =>
    eventually(`${count} locks to be held`, async () => (logind.held === count ? true : undefined));

  it('a shutdown is delayed until the pods have terminated, those of low priority first', async () => {
    await locks(1);
    node.add('low', { containers: { main: { script: endsAfter(1) } }, priority: 0 });
    node.add('high', { containers: { main: { script: endsAfter(0) } }, priority: 5_000 });
    await Promise.all([node.running('low'), node.running('high')]);
    logind.prepareForShutdown(true);
    await locks(0);
    for (const name of ['low', 'high']) {
      const { phase, reason, message, conditions = [] } = node.status(name);
      const why = 'Pod was terminated in response to imminent node shutdown.';
      assert.deepEqual([phase, reason, message], ['Failed', 'Terminated', why]);
      const condition = conditions.find(({ type }) => type === 'DisruptionTarget');
      assert.deepEqual([condition?.status, condition?.reason], ['True', 'TerminationByKubelet']);
    }
    const [low, high] = await Promise.all(
      ['low', 'high'].map(async (name) => Number.parseFloat((await node.lines(name))[0] ?? '')),
    );
    assert.ok((low ?? 0) < (high ?? 0), `low exited at ${low}, high at ${high}`);
  });

  it('rejects new pods and reports NotReady during a shutdown, and takes the inhibitor lock again after a cancelled shutdown', async () => {
    node.add('late', { containers: { main: {} } });
    const { reason } = await node.is('late', 'refused', ({ phase }) => phase === 'Failed');
    assert.equal(reason, 'NodeShutdown');
    const { kubelet } = node.inner;
    assert.equal(kubelet.control.shutdown?.problem(), 'node is shutting down');
    const reported = kubelet.state.node
      .story()
      .entries.map((entry) => ('reason' in entry ? entry.reason : ''));
    assert.equal(reported.filter((each) => each === 'Shutdown').length, 1);
    logind.prepareForShutdown(false);
    await locks(1);
    assert.equal(kubelet.control.shutdown?.problem(), undefined);
    node.add('after', { containers: { main: {} } });
    await node.running('after');
  });
});
