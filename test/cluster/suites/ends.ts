import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/kinds/index.ts';
import { container, isReady, pod, podIsGone, podPath, podSpec, removePods } from '../cluster-pods.ts';
import { patiently } from '../patiently.ts';
import type { SmallCluster } from '../small-cluster.ts';
import { app } from '../workload-objects.ts';
import type { Place } from './place.ts';

interface EventList {
  readonly items: readonly { readonly reason?: string; readonly type?: string; readonly message?: string }[];
}

/**
 * A finalizer that keeps a pod in the API after its termination, so that the test can read its last
 * status.
 */
const holder = 'example.com/held';

function held(name: string, spec?: object): object {
  return { ...pod(name, spec), metadata: { name, namespace: 'default', finalizers: [holder] } };
}

/** Tests the termination of pods. */
export function endsOfPods(place: Place): void {
  describe(`termination of pods on a node of ${place.name}`, { skip: place.skip, timeout: 600_000 }, () => {
    let cluster: SmallCluster;

    before(async () => {
      cluster = await place.open();
    });

    after(async () => {
      await place.close(cluster);
    });

    const release = async (name: string) => {
      const patch = '{"metadata":{"finalizers":null}}';
      await cluster.plane.kubectl('patch', 'pod', name, '--type=merge', '-p', patch);
      await podIsGone(cluster.plane, name);
    };
    const eventsOf = async ({ metadata }: Pod) => {
      const selector = encodeURIComponent(`involvedObject.uid=${metadata?.uid}`);
      const path = `/api/v1/namespaces/default/events?fieldSelector=${selector}`;
      return (await cluster.plane.get<EventList>(path))?.items ?? [];
    };
    /** Whether the pod has terminated completely, and only the finalizer keeps it. */
    const isOver = ({ metadata, status }: Pod) =>
      metadata?.deletionGracePeriodSeconds === 0 &&
      status?.containerStatuses?.[0]?.state?.terminated !== undefined;
    const runningIds = async (name: string) =>
      (await cluster.node.containersOf(name))
        .filter(({ state }) => state === 'CONTAINER_RUNNING')
        .map(({ id }) => id);
    const another = (than: Pod) => (found: Pod) =>
      found.metadata?.uid !== than.metadata?.uid && isReady(found);

    it('gracefully terminates a pod that is evicted through the API, and keeps the reason', async () => {
      await cluster.plane.make(held('evicted'));
      await cluster.ready('evicted');
      const eviction = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: 'evicted', namespace: 'default' },
      };
      const file = join(cluster.plane.folder, 'eviction.json');
      await writeFile(file, JSON.stringify(eviction));
      await cluster.plane.kubectl('create', '--raw', `${podPath('evicted')}/eviction`, '-f', file);
      const { status } = await cluster.podIs('evicted', 'over', isOver);
      assert.equal(status?.phase, 'Succeeded');
      const target = status.conditions?.find(({ type }) => type === 'DisruptionTarget');
      assert.deepEqual([target?.status, target?.reason], ['True', 'EvictionByEvictionAPI']);
      assert.equal(status.conditions?.find(({ type }) => type === 'Ready')?.status, 'False');
      await release('evicted');
      await cluster.noContainersOf('evicted');
    });

    it('reports pods that the node cannot admit as failed with the reason, and creates nothing for them', async () => {
      const { name: nodeName } = cluster.node;
      const on = (fields: object, ofContainer: object = {}) =>
        podSpec([container('main', ofContainer)], { nodeName, ...fields });
      const ports = { ports: [{ containerPort: 18_080 }] };
      await cluster.plane.make(pod('has-port', on({ hostNetwork: true }, ports)));
      await cluster.ready('has-port');
      const refused: Readonly<Record<string, readonly [object, string, RegExp]>> = {
        elsewhere: [
          on({ nodeSelector: { colour: 'red' } }),
          'NodeAffinity',
          /^Pod was rejected: Predicate NodeAffinity failed: node\(s\) didn't match Pod's node affinity\/selector$/,
        ],
        'wants-port': [
          on({ hostNetwork: true }, ports),
          'NodePorts',
          /^Pod was rejected: Predicate NodePorts failed: node\(s\) didn't have free ports for the requested pod ports$/,
        ],
        'wants-memory': [
          on({}, { resources: { requests: { memory: '500Ti' } } }),
          'OutOfmemory',
          /^Pod was rejected: Node didn't have enough resource: memory, requested: 549755813888000, used: \d+, capacity: \d+$/,
        ],
        'wants-sysctl': [
          on({ securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '65536' }] } }),
          'SysctlForbidden',
          /^Pod was rejected: forbidden sysctl: "kernel\.msgmax" not allowlisted$/,
        ],
        'wants-windows': [
          on({ os: { name: 'windows' } }),
          'PodOSNotSupported',
          /^Pod was rejected: Failed to admit pod as the OS field doesn't match node OS$/,
        ],
      };
      const names = Object.keys(refused);
      await cluster.plane.make(...Object.entries(refused).map(([name, [spec]]) => pod(name, spec)));
      for (const [name, [, reason, message]] of Object.entries(refused)) {
        const found = await cluster.phase(name, 'Failed');
        assert.equal(found.status?.reason, reason);
        assert.match(found.status?.message ?? '', message);
        assert.ok(found.status?.startTime !== undefined && found.status.qosClass !== undefined);
        const isTold = async () => (await eventsOf(found)).find((event) => event.reason === reason);
        const event = await patiently(`the event ${reason}`, isTold, cluster.told);
        assert.equal(event.type, 'Warning');
        assert.deepEqual(await cluster.node.containersOf(name), [], cluster.told());
      }
      await removePods(cluster.plane, 'has-port', ...names);
    });

    it('a Deployment replaces a pod that the node rejected', {
      skip: place.lacks('controllers'),
    }, async () => {
      const spec = podSpec([container('main')], {
        nodeName: cluster.node.name,
        nodeSelector: { colour: 'green' },
      });
      const template = { metadata: { labels: { app: 'replaced' } }, spec };
      await cluster.plane.make(app('Deployment', 'replaced', { template }));
      const refused = await patiently(
        'a pod to be refused',
        async () => (await cluster.podsWith('app=replaced')).find(({ status }) => status?.phase === 'Failed'),
        cluster.told,
      );
      assert.equal(refused.status?.reason, 'NodeAffinity');
      await cluster.plane.kubectl('label', 'node', cluster.node.name, 'colour=green');
      await cluster.plane.kubectl('rollout', 'status', 'deployment/replaced', '--timeout=90s');
      const running = (await cluster.podsWith('app=replaced')).filter(
        ({ status }) => status?.phase === 'Running',
      );
      assert.equal(running.length, 1);
      await cluster.plane.kubectl('delete', 'deployment', 'replaced', '--cascade=foreground');
      await cluster.plane.kubectl('label', 'node', cluster.node.name, 'colour-');
    });

    it('preempts another pod for a critical pod, and reports the preempted pod as failed with the reason', async () => {
      const { allocatable } = (await cluster.node.ready()).status ?? {};
      const cores = Number(allocatable?.['cpu']);
      assert.ok(cores >= 1, `allocatable CPUs are ${allocatable?.['cpu']}`);
      const most = { resources: { requests: { cpu: `${Math.round(cores * 700)}m` } } };
      const gives = podSpec([container('main', most)]);
      const critical = { nodeName: cluster.node.name, priorityClassName: 'system-node-critical' };
      await cluster.plane.make(pod('gives-way', gives));
      await cluster.ready('gives-way');
      await cluster.plane.make(pod('critical', podSpec([container('main', most)], critical)));
      await cluster.ready('critical');
      const { status } = await cluster.phase('gives-way', 'Failed');
      assert.equal(status?.reason, 'Preempting');
      const target = status.conditions?.find(({ type }) => type === 'DisruptionTarget');
      assert.deepEqual([target?.status, target?.reason], ['True', 'TerminationByKubelet']);
      await removePods(cluster.plane, 'gives-way', 'critical');
    });

    it('creates a mirror pod again after its forced deletion, updates it with its file, and deletes it with the file', async () => {
      const name = `followed-${cluster.node.name}`;
      const edition = (text: string) => {
        const env = [{ name: 'EDITION', value: text }];
        return pod('followed', podSpec([container('main', { env })]));
      };
      await cluster.node.put('followed.json', edition('first'));
      const first = await cluster.ready(name);
      const ids = await runningIds(name);
      await cluster.plane.kubectl('delete', 'pod', name, '--force', '--grace-period=0');
      const again = await cluster.podIs(name, 'mirrored again', another(first));
      assert.deepEqual(await runningIds(name), ids, 'its container must not have been restarted');
      await cluster.node.put('followed.json', edition('second'));
      const hash = (found: Pod) => found.metadata?.annotations?.['kubernetes.io/config.hash'];
      const second = await cluster.podIs(
        name,
        'as in the file',
        (found) => hash(found) !== hash(first) && another(again)(found),
      );
      assert.equal(second.spec?.containers[0]?.env?.[0]?.value, 'second');
      await patiently('one other container to run', async () => {
        const now = await runningIds(name);
        return now.length === 1 && now[0] !== ids[0] ? true : undefined;
      });
      const owner = second.metadata?.ownerReferences?.[0];
      assert.deepEqual([owner?.kind, owner?.name, owner?.controller], ['Node', cluster.node.name, true]);
      await cluster.node.take('followed.json');
      await podIsGone(cluster.plane, name);
      await cluster.noContainersOf(name);
    });

    it('applies after a restart the pod changes that were made while kubeling was down', async () => {
      const { node, plane } = cluster;
      const mirrors = ['edited', 'taken', 'unmirrored'].map((name) => `${name}-${node.name}`);
      const [edited = '', taken = '', unmirrored = ''] = mirrors;
      for (const name of ['edited', 'taken', 'unmirrored']) await node.put(`${name}.json`, pod(name));
      const once = podSpec([container('main', { command: ['true'] })], { restartPolicy: 'Never' });
      await plane.make(held('deleted'), held('over'), pod('forced'), pod('anew'), pod('stays'));
      await plane.make(pod('done', once));
      for (const name of ['deleted', 'forced', 'anew', 'stays', ...mirrors]) await cluster.ready(name);
      const [editedBefore, unmirroredBefore, anewBefore] = await Promise.all(
        [edited, unmirrored, 'anew'].map((name) => cluster.ready(name)),
      );
      assert.ok(editedBefore !== undefined && unmirroredBefore !== undefined && anewBefore !== undefined);
      const retained = [...(await runningIds('stays')), ...(await runningIds(unmirrored))];
      const [anewId] = await runningIds('anew');
      await cluster.ready('over');
      await plane.kubectl('delete', 'pod', 'over', '--wait=false');
      const endedBefore = [
        await cluster.podIs('over', 'over', isOver),
        await cluster.phase('done', 'Succeeded'),
      ];
      await node.kill('SIGKILL');
      await plane.kubectl('delete', 'pod', 'deleted', '--wait=false');
      await plane.kubectl('delete', 'pod', 'forced', 'anew', unmirrored, '--force', '--grace-period=0');
      await plane.make(pod('anew'));
      const changed = podSpec([container('main', { env: [{ name: 'EDITION', value: 'second' }] })]);
      await node.put('edited.json', pod('edited', changed));
      await node.take('taken.json');
      await node.start();

      const { status } = await cluster.podIs('deleted', 'over', isOver);
      assert.equal(status?.phase, 'Succeeded');
      assert.equal(status.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
      await release('deleted');
      for (const name of ['deleted', 'forced', taken]) await cluster.noContainersOf(name);
      await podIsGone(plane, taken);
      await cluster.podIs('anew', 'there again', another(anewBefore));
      await patiently('only the newer container to run', async () => {
        const [id, ...rest] = await runningIds('anew');
        return id !== undefined && id !== anewId && rest.length === 0 ? true : undefined;
      });
      const second = await cluster.podIs(edited, 'as in the file', another(editedBefore));
      assert.equal(second.spec?.containers[0]?.env?.[0]?.value, 'second');
      await cluster.podIs(unmirrored, 'mirrored again', another(unmirroredBefore));
      assert.deepEqual([...(await runningIds('stays')), ...(await runningIds(unmirrored))], retained);
      const endedNow = [
        await cluster.podIs('over', 'over', isOver),
        await cluster.phase('done', 'Succeeded'),
      ];
      assert.deepEqual(endedNow, endedBefore, 'nobody may touch what has ended');
      await release('over');
      for (const name of ['edited', 'unmirrored']) await node.take(`${name}.json`);
      for (const name of mirrors) await podIsGone(plane, name);
      await removePods(plane, 'anew', 'stays', 'done');
    });
  });
}
