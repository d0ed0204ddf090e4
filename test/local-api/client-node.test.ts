import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { PassThrough, Readable, Writable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import {
  CoreV1Api,
  Exec,
  KubeConfig,
  Log,
  makeInformer,
  PortForward,
  type V1Pod,
  type V1Status,
  Watch,
} from '@kubernetes/client-node';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';

const image = 'localhost/kubeling/busybox:1';
const namespace = 'default';

function podOf(name: string, command: readonly string[]): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { made: 'by-client-node' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image, command: [...command] }],
    },
  };
}

class Collected extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** The tests use @kubernetes/client-node, the client of most JavaScript programs. */
describe('@kubernetes/client-node against kubeling up', { timeout: 300_000 }, () => {
  let cluster: LocalCluster;
  let config: KubeConfig;
  let core: CoreV1Api;

  before(async () => {
    cluster = await LocalCluster.open();
    config = new KubeConfig();
    config.loadFromFile(cluster.kubeconfig);
    core = config.makeApiClient(CoreV1Api);
  });

  after(async () => {
    assert.deepEqual(await cluster?.leave(), []);
  });

  async function running(name: string): Promise<void> {
    await eventually(`the pod ${name} to run`, async () => {
      const pod = await core.readNamespacedPod({ name, namespace });
      return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
        ? true
        : undefined;
    });
  }

  it('creates, reads, lists, changes and deletes API objects', async () => {
    const nodes = await core.listNode();
    assert.equal(nodes.items.length, 1);
    const body = { metadata: { name: 'words' }, data: { a: 'b' } };
    await core.createNamespacedConfigMap({ namespace, body });
    const read = await core.readNamespacedConfigMap({ namespace, name: 'words' });
    assert.deepEqual(read.data, { a: 'b' });
    await core.replaceNamespacedConfigMap({ namespace, name: 'words', body: { ...read, data: { a: 'c' } } });
    await assert.rejects(
      core.replaceNamespacedConfigMap({ namespace, name: 'words', body: { ...read, data: { a: 'd' } } }),
      (error: { readonly code?: number }) => error.code === 409,
    );
    const { items } = await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=words' });
    assert.deepEqual(
      items.map(({ data }) => data),
      [{ a: 'c' }],
    );
    await core.deleteNamespacedConfigMap({ namespace, name: 'words' });
    await assert.rejects(
      core.readNamespacedConfigMap({ namespace, name: 'words' }),
      (error: { readonly code?: number }) => error.code === 404,
    );
  });

  it('a watch receives every change in order', async () => {
    const observed: string[] = [];
    const { metadata } = await core.listNamespacedConfigMap({ namespace });
    const request = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: metadata?.resourceVersion, labelSelector: 'watched=yes' },
      (type, object) => observed.push(`${type} ${object.data.n}`),
      () => {},
    );
    try {
      const body = { metadata: { name: 'watched', labels: { watched: 'yes' } }, data: { n: '1' } };
      await core.createNamespacedConfigMap({ namespace, body });
      await core.replaceNamespacedConfigMap({
        namespace,
        name: 'watched',
        body: { ...body, data: { n: '2' } },
      });
      await core.deleteNamespacedConfigMap({ namespace, name: 'watched' });
      await eventually('all events', async () => (observed.length >= 3 ? true : undefined));
      assert.deepEqual(observed, ['ADDED 1', 'MODIFIED 2', 'DELETED 2']);
    } finally {
      request.abort();
    }
  });

  it('an informer keeps its list up to date', async () => {
    const informer = makeInformer<V1Pod>(
      config,
      `/api/v1/namespaces/${namespace}/pods`,
      () => core.listNamespacedPod({ namespace }),
      'made=by-client-node',
    );
    const observed: string[] = [];
    for (const verb of ['add', 'update', 'delete'] as const)
      informer.on(verb, (pod) => observed.push(`${verb} ${pod.metadata?.name} ${pod.status?.phase}`));
    await informer.start();
    try {
      await core.createNamespacedPod({ namespace, body: podOf('informed', ['sleep', '1000']) });
      await running('informed');
      await eventually('the informer to report it running', async () =>
        observed.includes('update informed Running') ? true : undefined,
      );
      assert.equal(observed[0], 'add informed Pending');
      await core.deleteNamespacedPod({ namespace, name: 'informed' });
      await eventually('the informer to report its deletion', async () =>
        observed.some((each) => each.startsWith('delete informed')) ? true : undefined,
      );
    } finally {
      await informer.stop();
    }
  });

  it('exec runs a command in a container with its input, output and exit code', async () => {
    await core.createNamespacedPod({ namespace, body: podOf('worker', ['sleep', '1000']) });
    await running('worker');
    const [out, err] = [new Collected(), new Collected()];
    const status = await new Promise<V1Status>((resolve, reject) => {
      const command = ['sh', '-c', 'read line; echo "heard $line"; echo bad >&2; exit 5'];
      const input = Readable.from(['words\n']);
      new Exec(config)
        .exec(namespace, 'worker', 'main', command, out, err, input, false, resolve)
        .catch(reject);
    });
    assert.equal(out.text, 'heard words\n');
    assert.equal(err.text, 'bad\n');
    assert.equal(status.status, 'Failure');
    assert.equal(status.details?.causes?.[0]?.message, '5');
  });

  it('follows the log of a container', async () => {
    const script = 'for i in 1 2 3; do echo line $i; sleep 0.1; done; sleep 1000';
    await core.createNamespacedPod({ namespace, body: podOf('writer', ['sh', '-c', script]) });
    await running('writer');
    const lines = new PassThrough();
    let text = '';
    lines.on('data', (chunk) => {
      text += chunk;
    });
    const ended = once(lines, 'end');
    await new Log(config).log(namespace, 'writer', 'main', lines, { follow: true });
    await eventually('the lines', async () => (text === 'line 1\nline 2\nline 3\n' ? true : undefined));
    const all = await core.readNamespacedPodLog({ namespace, name: 'writer' });
    assert.equal(all, 'line 1\nline 2\nline 3\n');
    // The test waits until the log stream ends with its container, because aborting the stream
    // would raise an error that cannot be caught.
    await core.deleteNamespacedPod({ namespace, name: 'writer' });
    await ended;
  });

  it('forwards a port of a pod', async () => {
    const script = 'mkdir /www; echo forwarded > /www/index.html; exec httpd -f -p 80 -h /www';
    await core.createNamespacedPod({ namespace, body: podOf('server', ['sh', '-c', script]) });
    await running('server');
    const forward = new PortForward(config);
    const server: Server = createServer((socket) => {
      socket.on('error', () => {});
      void forward.portForward(namespace, 'server', [80], socket, null, socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const answer = await eventually('an answer', async () => {
        const response = await fetch(`http://127.0.0.1:${port}/`, {
          headers: { connection: 'close' },
        }).catch(() => undefined);
        return await response?.text().catch(() => undefined);
      });
      assert.equal(answer, 'forwarded\n');
    } finally {
      server.close();
    }
  });
});
