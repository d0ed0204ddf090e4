import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Node, Pod } from '../../../src/kinds/index.ts';
import { container, isReady, pod, podIsGone, podSpec, removePods } from '../cluster-pods.ts';
import { patiently } from '../patiently.ts';
import type { SmallCluster } from '../small-cluster.ts';
import { cronJob, jobSpec } from '../workload-objects.ts';
import type { Place } from './place.ts';

/**
 * Disables the controller that deletes the pods of missing nodes after forty seconds, because the
 * tests observe what the node itself does.
 */
const controllerManagerFlags = ['--controllers=*,-pod-garbage-collector-controller'];

/** Tests a node whose Node object is deleted while it runs. */
export function lostNode(place: Place): void {
  describe(`a node whose object was deleted in ${place.name}`, { skip: place.skip, timeout: 600_000 }, () => {
    let cluster: SmallCluster;

    before(async () => {
      cluster = await place.open({ flags: { controllerManagerFlags } });
    });

    after(async () => {
      await place.close(cluster);
    });

    const runningIds = async (...names: readonly string[]) => {
      const found = await Promise.all(names.map((name) => cluster.node.containersOf(name)));
      return found.flat().flatMap(({ id, state }) => (state === 'CONTAINER_RUNNING' ? [id] : []));
    };

    it('the node registers again after its Node object was deleted, while its pods keep running', async () => {
      const { node, plane } = cluster;
      const mirrorName = `fixed-${node.name}`;
      await node.put('fixed.json', pod('fixed'));
      // This container begins to fail once the Node is deleted, so it restarts while the Node is
      // missing.
      const fails = container('fails', { command: ['sh', '-c', 'sleep 5; exit 1'] });
      await plane.make(pod('goes-on', podSpec([container('main')])), pod('fails', podSpec([fails])));
      await cluster.ready('goes-on');
      await cluster.ready('fails');
      const mirror = await cluster.ready(mirrorName);
      const before = await node.ready();
      const ids = await runningIds('goes-on', mirrorName);
      await plane.kubectl('delete', 'node', node.name);

      // The restart of the container shows that pods are synced and their statuses published while
      // the Node is missing.
      const isAgain = ({ status }: Pod) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0;
      await cluster.podIs('fails', 'restarted', isAgain);
      const isAnother = ({ metadata }: Node) => metadata?.uid !== before.metadata?.uid;
      const now = await cluster.objectIs<Node>(`/api/v1/nodes/${node.name}`, 'another', isAnother);
      await node.ready();

      // If the cluster has a garbage collector, it deletes the objects owned by the deleted Node,
      // so the kubelet must create the mirror pod again.
      const isNew = (found: Pod) => found.metadata?.uid !== mirror.metadata?.uid && isReady(found);
      if (place.lacks('controllers') === false) {
        const again = await cluster.podIs(mirrorName, 'mirrored again', isNew);
        assert.equal(again.metadata?.ownerReferences?.[0]?.uid, now.metadata?.uid);
      }
      const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node.name}`;
      const isOwned = ({ metadata }: Pick<Node, 'metadata'>) =>
        metadata?.ownerReferences?.[0]?.uid === now.metadata?.uid;
      await cluster.objectIs<Pick<Node, 'metadata'>>(lease, 'of the new node', isOwned);
      await cluster.ready('goes-on');
      assert.deepEqual(await runningIds('goes-on', mirrorName), ids);
      await node.take('fixed.json');
      await podIsGone(plane, mirrorName);
      await removePods(plane, 'goes-on', 'fails');
    });

    it('runs the pods of a CronJob', { skip: place.lacks('controllers') }, async () => {
      const { plane } = cluster;
      await plane.make(cronJob('each', '* * * * *', jobSpec('each', 'echo now')));
      const byClock = await patiently(
        'a pod by the schedule',
        async () => (await cluster.podsWith('app=each'))[0]?.metadata?.name,
        cluster.told,
      );
      await cluster.phase(byClock, 'Succeeded');
      assert.equal(await plane.kubectl('logs', byClock), 'now\n');
      await plane.kubectl('delete', 'cronjob', 'each', '--cascade=foreground');
    });
  });
}
