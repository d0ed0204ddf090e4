import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from '../../../src/kinds/index.ts';
import type { ApiDoor } from '../api-door.ts';
import { type AuditLog, openWatches, writesToPods } from '../audit-log.ts';
import type { ClusterNode } from '../cluster-node.ts';
import { container, isReady, pod, podIsGone, podPath, podSpec, removePods } from '../cluster-pods.ts';
import type { ControlPlane } from '../control-plane.ts';
import { patiently } from '../patiently.ts';
import type { SmallCluster } from '../small-cluster.ts';
import type { Place } from './place.ts';

interface Deployment {
  readonly status?: { readonly availableReplicas?: number };
}

/** The directories of the shared libraries that the machine's kubectl may need in a container. */
const libraries = ['/lib', '/lib64'].filter((path) => existsSync(path));

/** How long the API server is unreachable in each flap, and reachable afterwards. */
const flapMs = 300;

/** Tests the common operations on pods with a control plane and a node. */
export function usualPods(place: Place): void {
  describe(`a node of ${place.name}`, { skip: place.skip, timeout: 900_000 }, () => {
    let cluster: SmallCluster;
    let plane: ControlPlane;
    let node: ClusterNode;
    let audit: AuditLog;
    let door: ApiDoor;

    before(async () => {
      cluster = await place.open();
      ({ plane, node, audit, door } = cluster);
      await node.reachable();
    });

    after(async () => {
      await place.close(cluster);
    });

    it('the control plane is ready', async () => {
      assert.equal(await plane.kubectl('get', '--raw', '/readyz'), 'ok');
    });

    it('a node authenticates with its certificate and has only the permissions of a node', async () => {
      const config = await plane.nodeKubeconfig('somebody');
      const may = (...what: readonly string[]) =>
        plane.kubectl('--kubeconfig', config, 'auth', 'can-i', ...what).catch(String);
      const who = await plane.kubectl('--kubeconfig', config, 'auth', 'whoami');
      assert.match(who, /system:node:somebody/);
      assert.match(await may('create', 'nodes'), /^yes/);
      assert.match(await may('delete', 'namespaces'), /no\n$/);
    });

    it('a node can request a certificate with a bootstrap token', {
      skip: place.lacks('bootstrap tokens'),
    }, async () => {
      const config = await plane.bootstrapKubeconfig();
      const who = await plane.kubectl('--kubeconfig', config, 'auth', 'whoami');
      assert.match(who, /system:bootstrap:[a-z0-9]{6}/);
      assert.match(await plane.kubectl('--kubeconfig', config, 'auth', 'can-i', 'create', 'csr'), /^yes/);
    });

    it('the node becomes Ready', async (t) => {
      t.diagnostic(`Ready ${Math.round(cluster.readyAfterMs)} ms after its start`);
      const { status }: Node = await node.ready();
      assert.equal(status?.daemonEndpoints?.kubeletEndpoint?.Port, node.port);
      assert.match(await plane.kubectl('get', 'nodes', '--no-headers'), /^node-a\s+Ready\s/);
    });

    it('runs a pod that the scheduler assigned to it', async () => {
      await plane.apply(pod('first'));
      const { spec, status } = await cluster.ready('first');
      assert.equal(spec?.nodeName, node.name);
      assert.equal(status?.phase, 'Running');
      assert.equal((await node.containersOf('first')).length, 1);
    });

    it('serves the log of a container and runs a command in it', async () => {
      const speaks = container('main', { command: ['sh', '-c', 'echo hello; sleep 1000'] });
      await plane.make(pod('speaker', podSpec([speaks])));
      await cluster.ready('speaker');
      assert.equal(await plane.kubectl('logs', 'speaker'), 'hello\n');
      assert.equal(await plane.kubectl('exec', 'speaker', '--', 'echo', 'from inside'), 'from inside\n');
      await removePods(plane, 'speaker');
    });

    it('removes a deleted pod and its containers', async () => {
      await plane.kubectl('delete', 'pod', 'first');
      assert.equal(await plane.get(podPath('first')), undefined);
      await cluster.noContainersOf('first');
    });

    it('publishes a static pod as a mirror pod, which is deleted with its file', async () => {
      const name = `fixed-${node.name}`;
      await node.put('fixed.json', pod('fixed'));
      const first = await cluster.ready(name);
      assert.equal(first.metadata?.annotations?.['kubernetes.io/config.source'], 'file');
      const [before] = await node.containersOf(name);
      await plane.kubectl('delete', 'pod', name, '--wait=false');
      const isAnother = ({ metadata }: typeof first) => metadata?.uid !== first.metadata?.uid;
      await cluster.podIs(name, 'mirrored again', (found) => isAnother(found) && isReady(found));
      const [same] = await node.containersOf(name);
      assert.equal(same?.id, before?.id, 'the container must not have been restarted');
      await node.take('fixed.json');
      await podIsGone(plane, name);
      await cluster.noContainersOf(name);
    });

    it('runs a Deployment of five replicas', { skip: place.lacks('controllers') }, async () => {
      const labels = { app: 'five' };
      const spec = podSpec([container('main')]);
      const template = { metadata: { labels }, spec };
      await plane.make({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'five', namespace: 'default' },
        spec: { replicas: 5, selector: { matchLabels: labels }, template },
      });
      const path = '/apis/apps/v1/namespaces/default/deployments/five';
      await patiently('five replicas to be available', async () => {
        const found = await plane.get<Deployment>(path);
        return found?.status?.availableReplicas === 5 ? true : undefined;
      });
      await plane.kubectl('delete', 'deployment', 'five', '--cascade=foreground');
    });

    it('sets environment variables of a container from config maps and secrets', async () => {
      await plane.kubectl('create', 'configmap', 'settings', '--from-literal=colour=green');
      await plane.kubectl('create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame');
      const env = [
        { name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } },
        { name: 'WORD', valueFrom: { secretKeyRef: { name: 'hidden', key: 'word' } } },
      ];
      const envFrom = [{ prefix: 'ALL_', configMapRef: { name: 'settings' } }];
      // The result is the exit code, so that the test does not depend on logs.
      const command = ['sh', '-c', 'test "$COLOUR $WORD $ALL_colour" = "green sesame green"'];
      const spec = podSpec([container('main', { command, env, envFrom })], { restartPolicy: 'Never' });
      await plane.make(pod('reads', spec));
      const { status } = await cluster.podIs('reads', 'over', ({ status: { phase = '' } = {} }) =>
        ['Succeeded', 'Failed'].includes(phase),
      );
      assert.equal(status?.phase, 'Succeeded');
    });

    it('mounts a token with which a pod can call the API server, and config maps as files that follow their changes', async () => {
      await plane.kubectl('create', 'configmap', 'file', '--from-literal=word=first');
      const volumes = [
        { name: 'file', configMap: { name: 'file' } },
        { name: 'kubectl', hostPath: { path: plane.kubectlProgram, type: 'File' } },
        ...libraries.map((path, index) => ({ name: `library-${index}`, hostPath: { path } })),
      ];
      const volumeMounts = [
        { name: 'file', mountPath: '/file' },
        { name: 'kubectl', mountPath: '/tools/kubectl', readOnly: true },
        ...libraries.map((mountPath, index) => ({ name: `library-${index}`, mountPath, readOnly: true })),
      ];
      // The API server listens on loopback of the machine, so the pod uses the host network.
      const { hostname: host, port } = new URL(plane.serverUrl);
      const env = [
        { name: 'KUBERNETES_SERVICE_HOST', value: host },
        { name: 'KUBERNETES_SERVICE_PORT', value: port },
      ];
      const fields = { volumes, automountServiceAccountToken: true, hostNetwork: true };
      await plane.make(pod('holder', podSpec([container('main', { volumeMounts, env })], fields)));
      await cluster.ready('holder');
      const read = (path: string) => plane.kubectl('exec', 'holder', '--', 'cat', path);
      const who = await plane.kubectl('exec', 'holder', '--', '/tools/kubectl', 'auth', 'whoami');
      assert.match(who, /system:serviceaccount:default:default/);
      assert.equal(await read('/file/word'), 'first');
      await plane.kubectl('patch', 'configmap', 'file', '-p', '{"data":{"word":"second"}}');
      await patiently('the file to change', async () =>
        (await read('/file/word')) === 'second' ? true : undefined,
      );
      await removePods(plane, 'holder');
    });

    it('neither restarts pods nor writes unchanged statuses after a kill and restart of the kubelet', async () => {
      const names = Array.from({ length: 8 }, (_, index) => `stays-${index}`);
      await plane.make(...names.map((name) => pod(name)));
      for (const name of names) await cluster.ready(name);
      const seen = async () =>
        await Promise.all(
          names.map(async (name) => {
            const { metadata, status } = await cluster.podIs(name, 'there', () => true);
            const [main] = status?.containerStatuses ?? [];
            return {
              version: metadata?.resourceVersion,
              id: main?.containerID,
              restarts: main?.restartCount,
            };
          }),
        );
      const before = await seen();
      const since = await audit.now();
      await node.kill('SIGKILL');
      // One pod is deleted while the kubelet is down.
      const [goes = ''] = names;
      await plane.kubectl('delete', 'pod', goes, '--wait=false');
      await node.start();
      await podIsGone(plane, goes);
      await cluster.noContainersOf(goes);
      names.shift();
      assert.deepEqual(await seen(), before.slice(1));
      const written = writesToPods(await audit.since(since)).filter((call) => !call.includes(`/${goes}`));
      assert.deepEqual(written, []);
      await removePods(plane, ...names);
    });

    it('restarts containers while the API server is down, and publishes their status afterwards', async () => {
      const fails = container('main', { command: ['sh', '-c', 'sleep 2; exit 3'] });
      await plane.make(pod('again', podSpec([fails])), pod('quiet'));
      await cluster.ready('again');
      await cluster.ready('quiet');
      const [before] = await node.containersOf('quiet');
      await plane.stopApiServer();
      await assert.rejects(plane.ask('/readyz'));
      await patiently('a container to run again', async () => {
        const all = await node.containersOf('again');
        return all.some(({ metadata }) => (metadata?.attempt ?? 0) >= 1) ? true : undefined;
      });
      await plane.startApiServer();
      await cluster.podIs(
        'again',
        'counted',
        ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1,
      );
      const [same] = await node.containersOf('quiet');
      assert.equal(same?.id, before?.id);
      await removePods(plane, 'again', 'quiet');
    });

    it('watches every object exactly once, as before, after the API server was repeatedly unreachable', async () => {
      await plane.kubectl('create', 'configmap', 'flapping', '--from-literal=a=b');
      const volumes = [{ name: 'file', configMap: { name: 'flapping' } }];
      await plane.make(pod('steady', podSpec([container('main')], { volumes })));
      await cluster.ready('steady');
      const watched = openWatches(await audit.since(0));
      const [before] = await node.containersOf('steady');
      for (let flap = 0; flap < 5; flap++) {
        await door.shut();
        await delay(flapMs);
        await door.reopen();
        await delay(flapMs);
      }
      let now: readonly string[] = [];
      await patiently(
        'everything to be watched as before',
        async () => {
          now = openWatches(await audit.since(0));
          return now.join('\n') === watched.join('\n') ? true : undefined;
        },
        () => `before:\n${watched.join('\n')}\nnow:\n${now.join('\n')}\n${cluster.told()}`,
      );
      await cluster.ready('steady');
      assert.deepEqual(await node.containersOf('steady'), [before]);
      await removePods(plane, 'steady');
      await plane.kubectl('delete', 'configmap', 'flapping');
    });

    it('starts a static pod while the API server does not respond', async () => {
      const name = `unheard-${node.name}`;
      door.freeze();
      await node.put('unheard.json', pod('unheard'));
      const runs = await patiently(
        'a container to run',
        async () => (await node.containersOf(name)).find(({ state }) => state === 'CONTAINER_RUNNING'),
        cluster.told,
      );
      door.thaw();
      await cluster.ready(name);
      const [same] = await node.containersOf(name);
      assert.equal(same?.id, runs.id);
      await node.take('unheard.json');
      await podIsGone(plane, name);
    });

    it('stops a pod that was deleted by force, and runs another one with its name', async () => {
      await plane.make(pod('twice'));
      const first = await cluster.ready('twice');
      await plane.kubectl('delete', 'pod', 'twice', '--force', '--grace-period=0');
      await plane.make(pod('twice'));
      const second = await cluster.ready('twice');
      assert.notEqual(second.metadata?.uid, first.metadata?.uid);
      await patiently('one container to be left', async () =>
        (await node.containersOf('twice')).length === 1 ? true : undefined,
      );
      await removePods(plane, 'twice');
    });

    it('rejects a pod that does not fit, with the reason', async () => {
      const much = container('main', { resources: { requests: { cpu: '1000' } } });
      await plane.make(pod('huge', podSpec([much], { nodeName: node.name })));
      const { status } = await cluster.podIs('huge', 'refused', (found) => found.status?.phase === 'Failed');
      assert.equal(status?.reason, 'OutOfcpu');
      assert.match(status?.message ?? '', /^Pod was rejected: Node didn't have enough resource: cpu/);
      await removePods(plane, 'huge');
    });
  });
}
