import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { KubelingNode } from '../kubeling-node.ts';
import { withoutKubectl } from './tour-commands.ts';

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));
const image = 'localhost/kubeling/busybox:1';

interface Ended {
  readonly code: number;
  readonly out: string;
}

function run(file: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({
        code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1,
        out: stdout + stderr,
      }),
    );
  });
}

async function kubectl(node: KubelingNode, ...args: readonly string[]): Promise<string> {
  const cache = ['--cache-dir', join(node.dataDir, 'kubectl-cache')];
  const { code, out } = await run('kubectl', [
    '--kubeconfig',
    join(node.dataDir, 'kubeconfig'),
    ...cache,
    ...args,
  ]);
  assert.equal(code, 0, out);
  return out;
}

async function apiUrl(node: KubelingNode): Promise<string> {
  return JSON.parse(await readFile(join(node.dataDir, 'up.json'), 'utf8')).api.url;
}

function sleeper(name: string) {
  const containers = [{ name: 'main', image, command: ['sleep', '1000'] }];
  const spec = { terminationGracePeriodSeconds: 0, containers };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
}

describe('kubeling up with its embedded API', { timeout: 400_000, skip: withoutKubectl() }, () => {
  let first: KubelingNode | undefined;
  let second: KubelingNode | undefined;

  after(async () => {
    const left = await Promise.all([first?.leave(), second?.leave()]);
    assert.deepEqual(
      left.flat().filter((each) => each !== undefined),
      [],
    );
  });

  it('adopts a data directory of a version without an API, and its pods keep running', async () => {
    // Creates a data directory as a kubeling version without the embedded API left it.
    first = await KubelingNode.open(undefined, ['--local-api=false']);
    assert.doesNotMatch(first.out, /^api /m);
    await first.put('old.json', sleeper('old'));
    await first.running('old');
    const before = (await first.containersOf('old')).map(({ id }) => id);
    await first.end('SIGTERM');
    first.change({}, []);
    await first.start();
    const name = `old-${hostname().toLowerCase()}`;
    const node = first;
    // Waits for the mirror pods, because the node is ready before all of them exist.
    await node.until('its mirror', async () =>
      (await kubectl(node, 'get', 'pods', '-o', 'name')).includes(name),
    );
    assert.match(
      await kubectl(first, 'wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s'),
      /condition met/,
    );
    assert.deepEqual(
      (await first.containersOf('old')).map(({ id }) => id),
      before,
    );
  });

  it('rejects a pod with a host port that the node itself uses, before and after a restart', async () => {
    assert.ok(first !== undefined);
    const port = async () =>
      Number(await readFile(join(first?.dataDir ?? '', 'kubelet/loopback-port'), 'utf8'));
    const before = await port();
    const taker = sleeper('taker');
    const ports = [{ containerPort: 80, hostPort: before, hostIP: '127.0.0.1' }];
    const containers = taker.spec.containers.map((container) => ({ ...container, ports }));
    const file = join(first.dataDir, 'taker.json');
    await writeFile(file, JSON.stringify({ ...taker, spec: { ...taker.spec, containers } }));
    await kubectl(first, 'apply', '-f', file);
    await kubectl(first, 'wait', '--for=jsonpath={.status.reason}=NodePorts', 'pod/taker', '--timeout=60s');
    const message = await kubectl(first, 'get', 'pod', 'taker', '-o', 'jsonpath={.status.message}');
    assert.match(message, new RegExp(`host port ${before} is used by the node itself`));
    await kubectl(first, 'delete', 'pod', 'taker');
    await first.end('SIGTERM');
    await first.start();
    assert.equal(await port(), before);
  });

  it('does not affect another kubeling on the same machine', async () => {
    assert.ok(first);
    second = await KubelingNode.open();
    assert.notEqual(await apiUrl(first), await apiUrl(second));
    await kubectl(second, 'create', 'configmap', 'mine');
    assert.doesNotMatch(await kubectl(first, 'get', 'configmaps'), /^mine /m);
    assert.doesNotMatch(await kubectl(second, 'get', 'pods'), /old-/);
  });

  it('reports the actual address of its kubelet in the node status when any free port is chosen', async () => {
    assert.ok(first && second);
    const ports = new Set<string>();
    for (const node of [first, second]) {
      const where = '{.items[0].status.daemonEndpoints.kubeletEndpoint.Port}';
      const port = await kubectl(node, 'get', 'nodes', '-o', `jsonpath=${where}`);
      // The serving certificate is trusted only by a client with the certificate authority of this
      // data directory.
      const ca = await readFile(join(node.dataDir, 'api', 'pki', 'ca.crt'), 'utf8');
      const socket = connect({
        host: '127.0.0.1',
        port: Number(port),
        ca,
        servername: hostname().toLowerCase(),
      });
      await once(socket, 'secureConnect');
      socket.destroy();
      ports.add(port);
    }
    assert.equal(ports.size, 2);
  });

  it('uses another API port when the previous one is in use', async () => {
    assert.ok(second);
    const url = new URL(await apiUrl(second));
    await second.end('SIGTERM');
    const server = createServer().listen(Number(url.port), '127.0.0.1');
    await once(server, 'listening');
    try {
      await second.start();
      assert.notEqual(await apiUrl(second), url.origin);
      assert.match(await kubectl(second, 'get', 'configmaps'), /^mine /m);
    } finally {
      server.close();
    }
  });

  it('a restarted API has the same address and data', async () => {
    assert.ok(second);
    const url = await apiUrl(second);
    await second.end('SIGKILL');
    await second.start();
    assert.equal(await apiUrl(second), url);
    assert.match(await kubectl(second, 'get', 'configmaps'), /^mine /m);
  });

  it('with --reset starts with an empty store, terminates the pods of the previous store, and keeps a backup of its data', async () => {
    assert.ok(second);
    await kubectl(second, 'run', 'gone', `--image=${image}`, '--', 'sleep', '1000');
    await kubectl(second, 'wait', '--for=condition=Ready', 'pod/gone', '--timeout=60s');
    await second.end('SIGTERM');
    second.change({}, ['--reset']);
    await second.start();
    assert.doesNotMatch(await kubectl(second, 'get', 'configmaps,pods'), /mine|gone/);
    const [, aside = ''] =
      /^api +starts empty; the previous objects are saved in (\S+)$/m.exec(second.out) ?? [];
    const retained = new DatabaseSync(aside, { readOnly: true });
    const names = retained
      .prepare('SELECT key FROM obj')
      .all()
      .map((row) => String(row['key']));
    retained.close();
    assert.ok(names.includes('/configmaps/default/mine') && names.includes('/pods/default/gone'), `${names}`);
    const node = second;
    await node.until('the pod to terminate', async () => (await node.containersOf('gone')).length === 0);
    second.change({}, []);
  });

  it('adds its context to a kubeconfig only when requested', async () => {
    assert.ok(second);
    const path = join(second.dataDir, 'own', 'config');
    await mkdir(join(second.dataDir, 'own'));
    await writeFile(path, 'apiVersion: v1\nkind: Config\ncurrent-context: work # mine\ncontexts: []\n');
    const reported = await second.command('context', '--kubeconfig', path, '--name', 'here');
    assert.match(reported, /The context here/);
    assert.equal(parse(await readFile(path, 'utf8'))['current-context'], 'here');
    const { code, out } = await run('kubectl', ['--kubeconfig', path, '--context', 'here', 'get', 'nodes']);
    assert.equal(code, 0, out);
  });

  it('reports that the API address is in use and changes nothing', async () => {
    assert.ok(second);
    await second.end('SIGTERM');
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const args = [
        'up',
        '--data-dir',
        second.dataDir,
        '--runtime-endpoint',
        'private',
        '--listen',
        `127.0.0.1:${port}`,
      ];
      const { code, out } = await run(kubeling, args);
      assert.equal(code, 1);
      assert.match(out, new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port}.*--listen`));
    } finally {
      server.close();
    }
  });

  it('recreates lost certificates', async () => {
    assert.ok(second);
    await rm(join(second.dataDir, 'api', 'pki', 'serving.pem'));
    await writeFile(join(second.dataDir, 'api', 'pki', 'node.pem'), 'this is no certificate');
    await second.start();
    assert.match(await kubectl(second, 'get', 'nodes'), / Ready /);
  });

  it('rejects a damaged or newer store, keeps it unchanged, and leaves pods running', async () => {
    assert.ok(second);
    await kubectl(second, 'run', 'survivor', `--image=${image}`, '--', 'sleep', '1000');
    await kubectl(second, 'wait', '--for=condition=Ready', 'pod/survivor', '--timeout=60s');
    await second.end('SIGTERM');
    const path = join(second.dataDir, 'api', 'store', 'objects.db');
    const good = await readFile(path);
    const later = Buffer.from(good);
    // The offset of the SQLite schema version in the file header.
    later.writeUInt32BE(99, 60);
    const args = ['up', '--data-dir', second.dataDir, '--runtime-endpoint', 'private'];
    for (const [bad, why] of [
      [Buffer.from('nothing of a store'), /damaged/],
      [Buffer.alloc(0), /it is empty, and was not when it was made/],
      [later, /a later version of kubeling wrote it/],
    ] as const) {
      await writeFile(path, bad);
      const { code, out } = await run(kubeling, args);
      assert.equal(code, 1, out);
      assert.match(out, /Cannot open the store .*; pods keep running; .* with --reset$/m);
      assert.match(out, why);
      const [, copy = ''] = /a copy of it is (\S+);/.exec(out) ?? [];
      assert.deepEqual(await readFile(copy), bad);
      assert.deepEqual(await readFile(path), bad);
      assert.equal((await second.containersOf('survivor')).length, 1);
    }
    await writeFile(path, good);
    await second.start();
    assert.match(await kubectl(second, 'get', 'pod', 'survivor'), /1\/1 +Running +0 /);
  });

  it('keeps events for the configured time and reports the size of its store', async () => {
    assert.ok(second);
    const node = second;
    const scheduled = ['get', 'events', '--field-selector=involvedObject.name=survivor,reason=Scheduled'];
    assert.match(await kubectl(node, ...scheduled), /Successfully assigned/);
    await node.end('SIGTERM');
    node.change({}, ['--event-ttl=1s']);
    await node.start();
    await node.until('old events to be deleted', async () =>
      /No resources/.test(await kubectl(node, ...scheduled)),
    );
    const metrics = await kubectl(node, 'get', '--raw', '/metrics');
    assert.match(metrics, /^apiserver_storage_size_bytes\{storage_cluster_id="local"\} [1-9]\d+$/m);
    assert.match(metrics, /^kubeling_store_commits_total [1-9]/m);
  });

  it('reports wrong flags before it changes anything', async () => {
    assert.ok(second);
    const dataDir = join(second.dataDir, 'never');
    for (const flag of ['--event-ttl=0s', '--listen=somewhere', '--grant=everything']) {
      const { code, out } = await run(kubeling, ['up', '--data-dir', dataDir, flag]);
      assert.equal(code, 1, out);
      assert.match(out, /^kubeling up: Cannot .* must be .*: current value is /);
      await assert.rejects(stat(dataDir), { code: 'ENOENT' });
    }
  });
});
