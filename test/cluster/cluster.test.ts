import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { Node } from '../../src/kinds/index.ts';
import { ClusterNode } from './cluster-node.ts';
import { container, isReady, pod, podIs, podIsGone, podPath, podSpec } from './cluster-pods.ts';
import { ControlPlane } from './control-plane.ts';
import { httpsGet } from './https-get.ts';
import { patiently } from './patiently.ts';
import { clusterAssets, noCluster } from './programs.ts';

interface Deployment {
  readonly status?: { readonly availableReplicas?: number };
}

describe('a real cluster', { skip: noCluster(), timeout: 900_000 }, () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await ControlPlane.open(clusterAssets());
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
  });

  it('has a control plane that is ready', async () => {
    assert.equal(await plane.kubectl('get', '--raw', '/readyz'), 'ok');
  });

  it('knows a node by its certificate and lets it do only the work of a node', async () => {
    const config = await plane.nodeKubeconfig('somebody');
    const may = (...what: readonly string[]) =>
      plane.kubectl('--kubeconfig', config, 'auth', 'can-i', ...what).catch(String);
    assert.match(await plane.kubectl('--kubeconfig', config, 'auth', 'whoami'), /system:node:somebody/);
    assert.match(await may('create', 'nodes'), /^yes/);
    assert.match(await may('delete', 'namespaces'), /no\n$/);
  });

  it('believes a bootstrap token and lets it ask for a certificate', async () => {
    const config = await plane.bootstrapKubeconfig();
    const who = await plane.kubectl('--kubeconfig', config, 'auth', 'whoami');
    assert.match(who, /system:bootstrap:[a-z0-9]{6}/);
    assert.match(await plane.kubectl('--kubeconfig', config, 'auth', 'can-i', 'create', 'csr'), /^yes/);
  });

  it('keeps what it knows while the API server is away', async () => {
    await plane.kubectl('create', 'configmap', 'kept', '--from-literal=a=b');
    await plane.stopApiServer();
    await assert.rejects(plane.ask('/readyz'));
    await plane.startApiServer();
    assert.ok(await plane.get('/api/v1/namespaces/default/configmaps/kept'));
  });

  describe('with a node', { timeout: 600_000 }, () => {
    let node: ClusterNode;

    before(async () => {
      node = await ClusterNode.open(plane);
      await node.start();
      // Without it no pod comes, and each would be waited for in vain.
      await node.ready();
    });

    after(async () => {
      assert.deepEqual(await node?.leave(), []);
    });

    const told = () => node.out.slice(-6_000);
    const ready = (name: string) => podIs(plane, name, 'Ready', isReady, told);
    const noContainersOf = (name: string) =>
      patiently(`no container to be left of ${name}`, async () =>
        (await node.containersOf(name)).length === 0 ? true : undefined,
      );

    it('the node becomes Ready', async () => {
      const { status }: Node = await node.ready();
      assert.equal(status?.daemonEndpoints?.kubeletEndpoint?.Port, node.port);
      assert.match(await plane.kubectl('get', 'nodes', '--no-headers'), /^node-a\s+Ready\s/);
    });

    it('runs a pod that the scheduler gave it', async () => {
      await plane.apply(pod('first'));
      const { spec, status } = await ready('first');
      assert.equal(spec?.nodeName, node.name);
      assert.equal(status?.phase, 'Running');
      assert.equal((await node.containersOf('first')).length, 1);
    });

    it('shows the log of a container and runs a command in it', async () => {
      const speaks = container('main', { command: ['sh', '-c', 'echo hello; sleep 1000'] });
      await plane.apply(pod('speaker', podSpec([speaks])));
      await ready('speaker');
      assert.equal(await plane.kubectl('logs', 'speaker'), 'hello\n');
      assert.equal(await plane.kubectl('exec', 'speaker', '--', 'echo', 'from inside'), 'from inside\n');
      await plane.kubectl('delete', 'pod', 'speaker');
    });

    it('removes a deleted pod and its containers', async () => {
      await plane.kubectl('delete', 'pod', 'first');
      assert.equal(await plane.get(podPath('first')), undefined);
      await noContainersOf('first');
    });

    it('shows a static pod as a mirror pod that goes only with its file', async () => {
      const name = `fixed-${node.name}`;
      await node.put('fixed.json', pod('fixed'));
      const first = await ready(name);
      assert.equal(first.metadata?.annotations?.['kubernetes.io/config.source'], 'file');
      const [before] = await node.containersOf(name);
      await plane.kubectl('delete', 'pod', name, '--wait=false');
      const isAnother = ({ metadata }: typeof first) => metadata?.uid !== first.metadata?.uid;
      await podIs(plane, name, 'mirrored again', (found) => isAnother(found) && isReady(found), told);
      const [same] = await node.containersOf(name);
      assert.equal(same?.id, before?.id, 'the container must not have been restarted');
      await node.take('fixed.json');
      await podIsGone(plane, name);
      await noContainersOf(name);
    });

    it('runs a deployment of five replicas', async () => {
      const labels = { app: 'five' };
      const spec = podSpec([container('main')]);
      const template = { metadata: { labels }, spec };
      await plane.apply({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'five', namespace: 'default' },
        spec: { replicas: 5, selector: { matchLabels: labels }, template },
      });
      const path = '/apis/apps/v1/namespaces/default/deployments/five';
      await patiently(
        'five replicas to be available',
        async () => {
          const found = await plane.get<Deployment>(path);
          return found?.status?.availableReplicas === 5 ? true : undefined;
        },
        told,
      );
      await plane.kubectl('delete', 'deployment', 'five', '--cascade=foreground');
    });

    it('gives a container variables from config maps and secrets', async () => {
      await plane.kubectl('create', 'configmap', 'settings', '--from-literal=colour=green');
      await plane.kubectl('create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame');
      const env = [
        { name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } },
        { name: 'WORD', valueFrom: { secretKeyRef: { name: 'hidden', key: 'word' } } },
      ];
      const envFrom = [{ prefix: 'ALL_', configMapRef: { name: 'settings' } }];
      // Its exit code tells, so that this does not depend on logs.
      const command = ['sh', '-c', 'test "$COLOUR $WORD $ALL_colour" = "green sesame green"'];
      const spec = podSpec([container('main', { command, env, envFrom })], { restartPolicy: 'Never' });
      await plane.apply(pod('reads', spec));
      const { status } = await podIs(
        plane,
        'reads',
        'over',
        ({ status: { phase = '' } = {} }) => ['Succeeded', 'Failed'].includes(phase),
        told,
      );
      assert.equal(status?.phase, 'Succeeded');
    });

    it('gives a pod a token that the API server believes, and config maps as files that follow their changes', async () => {
      await plane.kubectl('create', 'configmap', 'file', '--from-literal=word=first');
      const volumes = [{ name: 'file', configMap: { name: 'file' } }];
      const mounts = { volumeMounts: [{ name: 'file', mountPath: '/file' }] };
      const fields = { volumes, automountServiceAccountToken: true };
      await plane.apply(pod('holder', podSpec([container('main', mounts)], fields)));
      await ready('holder');
      const read = (path: string) => plane.kubectl('exec', 'holder', '--', 'cat', path);
      const token = await read('/var/run/secrets/kubernetes.io/serviceaccount/token');
      const { status, body } = await httpsGet(`${plane.serverUrl}${podPath('holder')}`, {
        ca: readFileSync(plane.ca),
        headers: { authorization: `Bearer ${token}` },
      });
      assert.equal(status, 403);
      assert.match(body, /system:serviceaccount:default:default/);
      assert.equal(await read('/file/word'), 'first');
      await plane.kubectl('patch', 'configmap', 'file', '-p', '{"data":{"word":"second"}}');
      await patiently('the file to change', async () =>
        (await read('/file/word')) === 'second' ? true : undefined,
      );
      await plane.kubectl('delete', 'pod', 'holder');
    });

    it('is killed and started again under running pods, and neither restarts them nor writes what is so already', async () => {
      const names = Array.from({ length: 8 }, (_, index) => `stays-${index}`);
      await plane.apply(...names.map((name) => pod(name)));
      for (const name of names) await ready(name);
      const seen = async () =>
        await Promise.all(
          names.map(async (name) => {
            const { metadata, status } = await podIs(plane, name, 'there', () => true);
            const [main] = status?.containerStatuses ?? [];
            return {
              version: metadata?.resourceVersion,
              id: main?.containerID,
              restarts: main?.restartCount,
            };
          }),
        );
      const before = await seen();
      await node.kill('SIGKILL');
      // Meanwhile one is to go.
      const [goes = ''] = names;
      await plane.kubectl('delete', 'pod', goes, '--wait=false');
      await node.start();
      await podIsGone(plane, goes);
      await noContainersOf(goes);
      names.shift();
      assert.deepEqual(await seen(), before.slice(1));
      await plane.kubectl('delete', 'pod', ...names);
    });

    it('goes on without the API server, which hears of it all afterwards', async () => {
      const fails = container('main', { command: ['sh', '-c', 'sleep 2; exit 3'] });
      await plane.apply(pod('again', podSpec([fails])), pod('quiet'));
      await ready('again');
      await ready('quiet');
      const [before] = await node.containersOf('quiet');
      await plane.stopApiServer();
      await patiently('a container to run again', async () => {
        const all = await node.containersOf('again');
        return all.some(({ metadata }) => (metadata?.attempt ?? 0) >= 1) ? true : undefined;
      });
      await plane.startApiServer();
      await podIs(
        plane,
        'again',
        'counted',
        ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1,
        told,
      );
      const [same] = await node.containersOf('quiet');
      assert.equal(same?.id, before?.id);
      await plane.kubectl('delete', 'pod', 'again', 'quiet');
    });

    it('ends a pod that was deleted by force, and lets another take its name', async () => {
      await plane.apply(pod('twice'));
      const first = await ready('twice');
      await plane.kubectl('delete', 'pod', 'twice', '--force', '--grace-period=0');
      await plane.apply(pod('twice'));
      const second = await ready('twice');
      assert.notEqual(second.metadata?.uid, first.metadata?.uid);
      await patiently('one container to be left', async () =>
        (await node.containersOf('twice')).length === 1 ? true : undefined,
      );
      await plane.kubectl('delete', 'pod', 'twice');
    });

    it('refuses a pod that does not fit, with the reason', async () => {
      const much = container('main', { resources: { requests: { cpu: '1000' } } });
      await plane.apply(pod('huge', podSpec([much], { nodeName: node.name })));
      const { status } = await podIs(
        plane,
        'huge',
        'refused',
        (found) => found.status?.phase === 'Failed',
        told,
      );
      assert.equal(status?.reason, 'OutOfcpu');
      assert.match(status?.message ?? '', /^Pod was rejected: Node didn't have enough resource: cpu/);
      await plane.kubectl('delete', 'pod', 'huge');
    });
  });
});
