import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manifest } from './pods.ts';
import { type Call, RaceNode } from './race-node.ts';

const withVolume = { spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } };

function isOn(volume: 'empty-dir', method: string, call: Call): boolean {
  return call.part === 'files' && call.method === method && String(call.args[0]).includes(volume);
}

for (const trouble of ['hangs', 'fails'] as const) {
  it(`unmount hangs 5m, heals, manifest re-added: the pod directory is kept until the unmount succeeds, then the pod runs again; the unmount ${trouble}`, async () => {
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

it('kill during volume wait: the wait is cancelled and no container starts', async () => {
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
  await node.until('nobody waits any more', () => node.kubelet.control.workers.sizes.pods === 0, 10_000);
  mounted.resolve();
  node.toll = {};
  await node.pass(60_000);
  assert.deepEqual(
    node.calls.filter(({ method }) => method === 'runPodSandbox'),
    [],
  );
  await node.becomesClean(10_000);
});

it('a volume that is not mounted in time is named in an event, and the pod starts when the volume is mounted', async () => {
  await using node = await RaceNode.start();
  const healed = Promise.withResolvers<void>();
  node.toll = {
    before: (call) => (isOn('empty-dir', 'makeSharedDirectory', call) ? healed.promise : undefined),
  };
  const host = { name: 'host', hostPath: { path: '/data' } };
  const spec = { volumes: [...withVolume.spec.volumes, host] };
  node.write('web', manifest('web', { spec }));
  await node.uidOf('web');
  const events = () =>
    node.kubelet.state.flights
      .find('web')
      .flatMap(({ entries }) => entries.filter(({ is }) => is === 'event'));
  const told = () =>
    events().some(
      (entry) =>
        'reason' in entry &&
        entry.reason === 'FailedMount' &&
        entry.message ===
          'Unable to attach or mount volumes: unmounted volumes=[scratch], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition; "scratch": still being mounted',
    );
  await node.until('it is told', told, 130_000);
  assert.deepEqual(node.running(await node.uidOf('web')), []);
  node.toll = {};
  healed.resolve();
  await node.runs(await node.uidOf('web'));
});

it('the status reports a recursively read-only mount as recursively read-only', async () => {
  await using node = await RaceNode.start();
  const able = { recursiveReadOnly: true, userNamespaces: false };
  const abilities = { handlers: new Map([['', able]]), strictGroups: false };
  // The runtime reports support for recursive read-only mounts, as newer runtimes do.
  Object.defineProperty(node.kubelet.state.runtimeState, 'abilities', { get: () => abilities });
  const mounts = ['Enabled', 'IfPossible', 'Disabled'].map((recursiveReadOnly) => ({
    name: 'scratch',
    mountPath: `/${recursiveReadOnly}`,
    readOnly: true,
    recursiveReadOnly,
  }));
  const { spec } = JSON.parse(manifest('web', withVolume));
  const containers = [{ ...spec.containers[0], volumeMounts: mounts }];
  const uid = await node.runsStatic('web', manifest('web', { spec: { ...withVolume.spec, containers } }));
  const status = node.kubelet.state.statuses.getPodStatus(uid);
  assert.deepEqual(
    status?.containerStatuses?.[0]?.volumeMounts?.map(({ recursiveReadOnly }) => recursiveReadOnly),
    ['Enabled', 'Enabled', 'Disabled'],
  );
});
