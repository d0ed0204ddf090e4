import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { container, isReady, pod, podIs, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { noCluster } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';

interface Events {
  readonly items: readonly { readonly reason?: string; readonly message?: string }[];
}

describe('the kubelet handles RuntimeClasses of pods in a real cluster', { skip: noCluster() }, () => {
  let cluster: SmallCluster;

  before(async () => {
    cluster = await SmallCluster.open();
    const runtimeClass = (name: string, handler: string) => ({
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name },
      handler,
    });
    await cluster.plane.apply(runtimeClass('plain', 'runc'), runtimeClass('odd', 'nothing'));
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  it('runs a pod with the handler of its RuntimeClass', async () => {
    await cluster.plane.apply(pod('plain', podSpec([container('main')], { runtimeClassName: 'plain' })));
    await podIs(cluster.plane, 'plain', 'ready', isReady);
  });

  it('keeps a pod waiting if its RuntimeClass names a handler that the runtime lacks, and reports the handler', async () => {
    const { plane } = cluster;
    await plane.apply(pod('odd', podSpec([container('main')], { runtimeClassName: 'odd' })));
    const path = '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=odd';
    const reported = await patiently('an event to tell', async () => {
      const { items } = (await plane.get<Events>(path)) ?? { items: [] };
      return items.find(({ reason }) => reason === 'FailedCreatePodSandBox');
    });
    assert.match(reported.message ?? '', /nothing/);
    await podIs(plane, 'odd', 'waiting', ({ status }) => status?.phase === 'Pending');
  });
});
