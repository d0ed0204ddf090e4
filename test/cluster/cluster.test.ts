import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Node } from '../../src/kinds/index.ts';
import { ClusterNode } from './cluster-node.ts';
import { container, isReady, pod, podIs, podIsGone, podPath, podSpec } from './cluster-pods.ts';
import { ControlPlane } from './control-plane.ts';
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
  });
});
