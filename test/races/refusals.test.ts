import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Pod, podUid } from '../../src/pods/index.ts';
import { apiPod, manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

const kernel = {
  sysctls: { kernelRelease: '6.1.0', allowedUnsafe: ['kernel.msg*'] },
  appArmor: 'disabled',
} as const;

it('a pod with a forbidden sysctl is rejected before any part of it is created, and other pods run', async () => {
  await using node = await RaceNode.start({ settings: { kernel } });
  const withSysctl = (name: string) => ({ spec: { securityContext: { sysctls: [{ name, value: '1' }] } } });
  node.write('bad', manifest('bad', withSysctl('kernel.sem')));
  node.write('good', manifest('good', withSysctl('kernel.msgmax')));
  const [bad, good] = [await node.uidOf('bad'), await node.uidOf('good')];
  await node.runs(good);
  const status = node.kubelet.state.statuses.getPodStatus(bad);
  assert.deepEqual(
    [status?.phase, status?.reason, status?.message],
    ['Failed', 'SysctlForbidden', 'Pod was rejected: forbidden sysctl: "kernel.sem" not allowlisted'],
  );
  assert.ok(node.events(bad).includes('SysctlForbidden'));
  assert.deepEqual(node.of(bad), []);
});

it('a pod that requires unsupported user namespaces or an unknown runtime class stays pending and reports the reason', async () => {
  await using node = await RaceNode.start({ settings: { kernel } });
  node.write('users', manifest('users', { spec: { hostUsers: false } }));
  node.write('class', manifest('class', { spec: { runtimeClassName: 'gvisor' } }));
  for (const [name, why] of [
    ['users', /runtime does not support user namespaces/],
    ['class', /no runtime for .*gvisor.* is configured/],
  ] as const) {
    const uid = await node.uidOf(name);
    await node.until(`${name} is refused`, () => node.events(uid).includes('FailedCreatePodSandBox'));
    assert.equal(node.phase(uid), 'Pending');
    assert.deepEqual(node.of(uid), []);
    assert.match(JSON.stringify(node.kubelet.state.flights.find(uid)), why);
  }
});

function asking(name: string, more: Partial<Pod['spec']> = {}): Pod {
  const pod = apiPod(name, `uid-${name}`, { onTerm: 'ignore' });
  const resources = { requests: { cpu: '3' } };
  const containers = pod.spec.containers.map((each) => ({ ...each, resources }));
  return { ...pod, spec: { ...pod.spec, containers, ...more } };
}

it('a pod that waits for the resources of a terminating pod starts as soon as that pod has terminated', async () => {
  for (const laterMs of [0, 300, 600]) {
    await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
    const [old, next] = [asking('old'), asking('next')];
    node.api(old);
    await node.runs('uid-old');
    const ending = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 };
    const ended = { ...old, metadata: { ...old.metadata, ...ending } };
    node.api(ended);
    await node.pass(laterMs);
    node.api(ended, next);
    await node.until('the old one has ended', () => node.running('uid-old').length === 0);
    const ms = await node.runs('uid-next', 5_000);
    assert.ok(ms < 250, `after ${ms} ms`);
  }
});

it('a pod that is preempted while it waits for resources fails as Preempting', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
  const [old, waiting] = [asking('old'), asking('waiting')];
  node.api(old);
  await node.runs('uid-old');
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 20 };
  const ended = { ...old, metadata: { ...old.metadata, ...ending } };
  node.api(ended);
  await node.pass(100);
  node.api(ended, waiting);
  await node.pass(1_000);
  node.api(ended, waiting, asking('vital', { priority: 2_000_000_000 }));
  await node.runs('uid-vital');
  await node.pass(60_000);
  const status = node.kubelet.state.statuses.getPodStatus(podUid('uid-waiting'));
  assert.deepEqual([status?.phase, status?.reason], ['Failed', 'Preempting']);
  assert.deepEqual(node.events('uid-waiting'), ['Preempting']);
});
