import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manifest } from './pods.ts';
import { type Call, RaceNode } from './race-node.ts';

const withVolume = { spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } };

function isOn(volume: 'empty-dir', method: string, call: Call): boolean {
  return call.part === 'files' && call.method === method && String(call.args[0]).includes(volume);
}

for (const trouble of ['hangs', 'fails'] as const) {
  it(`unmount hangs 5m, heals, manifest re-added: dir kept, then removed, pod runs; it ${trouble}`, async () => {
    await using node = await RaceNode.start();
    const text = manifest('web', withVolume);
    const uid = await node.runsStatic('web', text);
    const healed = Promise.withResolvers<void>();
    const busy = () => (trouble === 'hangs' ? healed.promise : Promise.reject(new Error('EBUSY')));
    node.toll = { before: (call) => (isOn('empty-dir', 'remove', call) ? busy() : undefined) };
    node.remove('web');
    await node.pass(300_000);
    assert.deepEqual(node.running(uid), []);
    assert.deepEqual(await node.world.machine.files.names('/var/lib/kubelet/pods'), [uid]);
    node.toll = {};
    healed.resolve();
    await node.becomesClean(15_000);
    assert.equal(await node.runsStatic('web', text), uid);
  });
}

it('kill during volume wait: cancelled, nothing starts', async () => {
  await using node = await RaceNode.start();
  const mounted = Promise.withResolvers<void>();
  let waiting = 0;
  node.toll = {
    before: (call) => {
      if (!isOn('empty-dir', 'makeSharedDirectory', call)) return undefined;
      waiting++;
      return mounted.promise;
    },
  };
  node.write('web', manifest('web', withVolume));
  await node.until('it waits for its volume', () => waiting > 0);
  node.remove('web');
  await node.until('nobody waits any more', () => node.kubelet.workers.remembered.pods === 0, 10_000);
  mounted.resolve();
  node.toll = {};
  await node.pass(60_000);
  assert.deepEqual(
    node.calls.filter(({ method }) => method === 'runPodSandbox'),
    [],
  );
  await node.becomesClean(10_000);
});
