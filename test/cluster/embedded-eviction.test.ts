import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Node, NodeCondition } from '../../src/kinds/index.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import { container, pod, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { SmallCluster } from './small-cluster.ts';

interface EventList {
  readonly items: readonly {
    readonly reason: string;
    readonly message: string;
    readonly involvedObject: { readonly kind: string };
  }[];
}

const diskPressure = ({ status }: Node): NodeCondition | undefined =>
  status?.conditions?.find(({ type }) => type === 'DiskPressure');

it('the Node of a small disk says that it is short of it, and that it is no more', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
  timeout: 300_000,
}, async () => {
  using disk = new MountedDisk();
  await using cluster = await SmallCluster.openEmbedded(
    {},
    {
      folder: disk.path,
      config: { evictionHard: { 'nodefs.available': '24Mi' }, evictionPressureTransitionPeriod: '1s' },
    },
  );
  const { plane, node } = cluster;
  const path = `/api/v1/nodes/${node.name}`;
  const says = (status: string) =>
    cluster.objectIs<Node>(
      path,
      `${status} of DiskPressure`,
      (seen) => diskPressure(seen)?.status === status,
    );
  const before = diskPressure(await says('False'));
  assert.equal(before?.reason, 'KubeletHasNoDiskPressure');

  const volumeMounts = [{ name: 'scratch', mountPath: '/scratch' }];
  const fill = 'dd if=/dev/zero of=/scratch/x bs=1M count=30; sleep 100000 & wait';
  const filling = container('main', { command: ['sh', '-c', fill], volumeMounts });
  await plane.apply(
    pod('other', podSpec([container('main')], { nodeName: node.name })),
    pod('filler', podSpec([filling], { nodeName: node.name, volumes: [{ name: 'scratch', emptyDir: {} }] })),
  );
  const during = diskPressure(await says('True'));
  assert.equal(during?.reason, 'KubeletHasDiskPressure');
  assert.notEqual(during?.lastTransitionTime, before?.lastTransitionTime);
  const { status } = await cluster.phase('filler', 'Failed');
  assert.equal(status?.reason, 'Evicted');
  const after = diskPressure(await says('False'));
  assert.deepEqual([after?.reason, after?.message], [before?.reason, before?.message]);
  await cluster.phase('other', 'Running');

  let told: readonly string[] = [];
  await patiently(
    'the events of the Node',
    async () => {
      const { items = [] } = (await plane.get<EventList>('/api/v1/namespaces/default/events')) ?? {};
      told = items.filter(({ involvedObject }) => involvedObject.kind === 'Node').map(({ reason }) => reason);
      const wanted = ['NodeHasDiskPressure', 'EvictionThresholdMet', 'NodeHasNoDiskPressure'];
      return wanted.every((reason) => told.includes(reason)) || undefined;
    },
    () => told.join(' '),
  );
});
