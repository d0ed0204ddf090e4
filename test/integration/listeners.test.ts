import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { unshareRoot } from '../../src/cli/run/kubelet-directories.ts';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { realClock } from '../../src/lib/index.ts';
import { nodeConfig } from '../cluster/node-config.ts';
import { type AttemptPlace, attempt } from '../connection-attempt.ts';
import { CertificateFolder } from '../fakes/certificate-authority.ts';
import { IsolatedNetwork, inNetworkOf, routeLoopbackVia } from '../isolated-network.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import {
  type FoundListener,
  findListeners,
  type NodeDirectories,
  type SortedListeners,
  sortListeners,
} from '../listeners/find-listeners.ts';
import { type ListenerRow, listenerTable, type TcpAddress } from '../listeners/table.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../private-runtime.ts';

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));
const signal = new AbortController().signal;
const nobody = 65_534;
/**
 * Runs kubeling with umask 0, so that the test detects a socket that kubeling creates with too wide
 * permissions and restricts only after it listens; the umask of the shell could remove these
 * permissions.
 */
const lax = ['sh', '-c', 'umask 0; exec "$@"', 'sh'];
const refused = { error: 'ECONNREFUSED' };
const denied = { error: 'EACCES' };

/** Sends a plain HTTP request: TLS servers respond with a TLS alert, other servers with HTTP. */
async function isTls(port: number, through: readonly string[]): Promise<boolean> {
  const got = await attempt({ host: '127.0.0.1', port }, 'GET / HTTP/1.0\r\n\r\n', { through });
  return !('answer' in got && got.answer.startsWith('HTTP/'));
}

async function sorted(places: NodeDirectories, through: readonly string[]): Promise<SortedListeners> {
  return await sortListeners(findListeners(through), listenerTable, places, (port) => isTls(port, through));
}

function assertTable({ unknown, missing }: SortedListeners): void {
  assert.deepEqual(unknown, [], 'listeners that are not in the table');
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
    'rows of the table without a listener',
  );
}

type TcpListener = [ListenerRow & { readonly place: TcpAddress }, Required<FoundListener>['at']];

function tcpListeners({ found }: SortedListeners): readonly TcpListener[] {
  return [...found].flatMap(([row, listeners]) => {
    const { place } = row;
    return place.kind === 'tcp'
      ? listeners.flatMap(({ at }): TcpListener[] => (at === undefined ? [] : [[{ ...row, place }, at]]))
      : [];
  });
}

function sockets({ found }: SortedListeners): readonly string[] {
  return [...found.values()].flat().flatMap(({ path }) => (path === undefined ? [] : [path]));
}

/**
 * Asserts that a client without credentials receives the response that the row of the listener
 * table declares.
 */
async function assertAnswers(
  [{ name, place }, { port }]: TcpListener,
  host: string,
  place_: AttemptPlace,
): Promise<void> {
  const got = await Promise.all(
    Object.keys(place.answers).map(async (request) => {
      const text = `${request} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
      const outcome = await attempt({ host, port, tls: place.tls }, text, place_);
      const status = 'answer' in outcome ? /^HTTP\/1\.1 (\d+)/.exec(outcome.answer)?.[1] : outcome.error;
      return [request, Number(status) || JSON.stringify(outcome)] as const;
    }),
  );
  assert.deepEqual(Object.fromEntries(got), place.answers, name);
}

async function assertFiles({ found }: SortedListeners): Promise<void> {
  for (const [{ name, place }, listeners] of found) {
    if (place.kind !== 'unix') continue;
    for (const { path = '' } of listeners) {
      const { mode, uid, gid } = await stat(path);
      assert.deepEqual([(mode & 0o777).toString(8), uid, gid], [place.mode, 0, 0], `${name} at ${path}`);
    }
  }
}

describe('listeners of "kubeling up"', { timeout: 400_000 }, () => {
  let network: IsolatedNetwork;
  let node: KubelingNode;
  let listeners: SortedListeners;
  const pids = new Map<string, number>();

  async function runPod(name: string, spec: object = {}): Promise<void> {
    const containers = [{ name: 'main', image: busyboxImageName, command: ['sleep', '100000'] }];
    const pod = { terminationGracePeriodSeconds: 0, containers, ...spec };
    await node.put(`${name}.json`, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: pod });
    await node.until(`the pod ${name} to run`, async () =>
      (await node.containersOf(name)).some(({ state }) => state === 'CONTAINER_RUNNING'),
    );
    const [container] = await node.containersOf(name);
    const { info } = await node.cri.containerStatus(
      { containerId: container?.id ?? '', verbose: true },
      signal,
    );
    pids.set(name, JSON.parse(info['info'] ?? '').pid);
  }

  const pidOf = (name: string) => pids.get(name) ?? 0;

  before(async () => {
    network = new IsolatedNetwork();
    node = await KubelingNode.open(undefined, [], [...network.node, ...lax]);
    // kubeling creates its data directory with this mode; the private temporary directory of a test
    // would hide sockets with too wide permissions.
    await chmod(node.dataDir, 0o711);
    await runPod('plain');
    await runPod('host', { hostNetwork: true });
    const paths = { way: 'up', dataDir: node.dataDir, rootDir: join(node.dataDir, 'kubelet') } as const;
    listeners = await sorted(paths, network.node);
  });

  after(async () => {
    try {
      assert.deepEqual(await node?.leave(), []);
    } finally {
      network?.[Symbol.dispose]();
    }
  });

  it('the listeners are exactly those of the listener table', () => assertTable(listeners));

  it('sockets have the owner and mode of the listener table', () => assertFiles(listeners));

  it('kubeling and containerd run with umask 0022, whatever the umask of the shell', async () => {
    const { pid } = JSON.parse(await readFile(join(node.dataDir, 'containerd/containerd.pid'), 'utf8'));
    for (const each of [node.pid, pid])
      assert.match(await readFile(`/proc/${each}/status`, 'utf8'), /^Umask:\s+0022$/m);
  });

  it('sockets deny connections of other users of the machine', async () => {
    for (const path of sockets(listeners))
      assert.deepEqual(await attempt({ path }, 'x', { uid: nobody }), denied, path);
  });

  it('sockets do not appear in the file systems of pods, with or without the host network', () => {
    for (const name of ['plain', 'host'])
      for (const path of sockets(listeners)) assert.ok(!existsSync(`/proc/${pidOf(name)}/root${path}`), path);
  });

  it('listeners respond to other users of the machine as the listener table declares', async () => {
    for (const each of tcpListeners(listeners))
      await assertAnswers(each, '127.0.0.1', { through: network.node, uid: nobody });
  });

  it('listeners respond to pods on the host network as the listener table declares', async () => {
    for (const each of tcpListeners(listeners))
      await assertAnswers(each, '127.0.0.1', { through: inNetworkOf(pidOf('host')) });
  });

  it('listeners are unreachable for pods with their own network and for neighbour machines', async () => {
    const pod = inNetworkOf(pidOf('plain'));
    const [file = '', ...words] = pod;
    const route = execFileSync(file, [...words, 'ip', 'route', 'show', 'default'], { encoding: 'utf8' });
    const gateway = /via (\S+) dev eth0/.exec(route)?.[1] ?? '';
    const ways = [
      [pod, '127.0.0.1'],
      [pod, gateway],
      [pod, network.nodeAddress],
      [network.neighbour, network.nodeAddress],
    ] as const;
    for (const [, { port }] of tcpListeners(listeners))
      for (const [through, host] of ways)
        assert.deepEqual(await attempt({ host, port }, '', { through }), refused, `${host}:${port}`);
    routeLoopbackVia(gateway, 'eth0', pod);
    const routed = await Promise.all(
      tcpListeners(listeners).map(([, { port }]) =>
        attempt({ host: '127.0.0.1', port }, '', { through: pod }),
      ),
    );
    assert.deepEqual(
      routed.filter((each) => !('error' in each) || each.error !== 'ETIMEDOUT'),
      [],
    );
  });

  it('a containerd streaming URL works once, and any other token is rejected', async () => {
    const [container] = await node.containersOf('plain');
    const containerId = container?.id ?? '';
    const { url } = await node.cri.exec({ containerId, cmd: ['true'], stdout: true }, signal);
    const { hostname: host, port, pathname } = new URL(url);
    assert.match(pathname, /^\/exec\/[\w-]{8,}$/);
    const ask = async (path: string) => {
      const headers = 'Host: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0';
      const place = { through: network.node, uid: nobody };
      const got = await attempt(
        { host, port: Number(port) },
        `POST ${path} HTTP/1.1\r\n${headers}\r\n\r\n`,
        place,
      );
      return 'answer' in got ? got.answer.split('\r\n')[0] : got.error;
    };
    assert.equal(
      await ask(`${pathname.slice(0, -1)}${pathname.endsWith('A') ? 'B' : 'A'}`),
      'HTTP/1.1 404 Not Found',
    );
    // A request without an upgrade is rejected but still consumes the token.
    assert.notEqual(await ask(pathname), 'HTTP/1.1 404 Not Found');
    assert.equal(await ask(pathname), 'HTTP/1.1 404 Not Found');
  });
});

describe('listeners of "kubeling run"', { timeout: 240_000 }, () => {
  let network: IsolatedNetwork;
  let runtime: PrivateRuntime;
  let folder: CertificateFolder;
  let dir = '';
  let child: ChildProcess | undefined;
  let listeners: SortedListeners;

  before(async () => {
    network = new IsolatedNetwork();
    runtime = await openPrivateRuntime();
    folder = new CertificateFolder();
    dir = await mkdtemp(join(tmpdir(), 'klg-listeners-'));
    await chmod(dir, 0o711);
    await mkdir(join(dir, 'manifests'));
    await writeFile(join(dir, 'ca.crt'), folder.authority('/CN=ca').pem);
    await writeFile(join(dir, 'config.json'), JSON.stringify(config()));
    await start();
    listeners = await sorted({ way: 'run', dataDir: dir, rootDir: join(dir, 'root') }, network.node);
  });

  after(async () => {
    try {
      if (child !== undefined && child.exitCode === null) {
        const gone = new Promise((resolve) => child?.once('exit', resolve));
        child.kill('SIGKILL');
        await gone;
      }
      await runtime?.[Symbol.asyncDispose]();
      folder?.[Symbol.dispose]();
      await unshareRoot(join(dir, 'root'), realClock(), signal);
      await rm(dir, { recursive: true, force: true });
    } finally {
      network?.[Symbol.dispose]();
    }
  });

  function config(): object {
    const { cgroup: cgroupRoot, socket: runtimeSocket } = runtime.containerd.layout;
    const clientCaFile = join(dir, 'ca.crt');
    const paths = { manifestDir: join(dir, 'manifests'), podLogsDir: join(dir, 'logs'), clientCaFile };
    const authentication = {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: clientCaFile },
    };
    const facts = { ...paths, cgroupRoot, runtimeSocket, port: 10_250, healthzPort: 10_248 };
    const alone = { authentication, authorization: { mode: 'AlwaysAllow' } };
    return nodeConfig(facts, {
      ...alone,
      readOnlyPort: 10_255,
      cgroupsPerQOS: false,
      enforceNodeAllocatable: [],
    });
  }

  async function start(): Promise<void> {
    const [file = '', ...words] = network.node;
    const flags = [`--config=${dir}/config.json`, `--root-dir=${dir}/root`, `--cert-dir=${dir}/pki`];
    const command = ['setpriv', '--pdeathsig', 'KILL', '--', kubeling, 'run', ...flags];
    const started = spawn(file, [...words, ...command, '--hostname-override=alone']);
    child = started;
    let out = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (chunk) => {
        out += String(chunk);
      });
    const sockets = ['device-plugins', 'pod-resources'].map((name) =>
      join(dir, 'root', name, 'kubelet.sock'),
    );
    await eventually(
      'kubeling to respond',
      async () => {
        assert.equal(started.exitCode, null, out);
        return out.includes('Serving kubelet on loopback') && sockets.every(existsSync) ? true : undefined;
      },
      60_000,
      () => out,
    );
  }

  it('the listeners are exactly those of the listener table', () => assertTable(listeners));

  it('sockets have the owner and mode of the listener table and deny other users', async () => {
    await assertFiles(listeners);
    for (const path of sockets(listeners))
      assert.deepEqual(await attempt({ path }, 'x', { uid: nobody }), denied, path);
  });

  it('listeners respond to other users of the machine as the listener table declares', async () => {
    for (const each of tcpListeners(listeners))
      await assertAnswers(each, '127.0.0.1', { through: network.node, uid: nobody });
  });

  it('listeners respond to neighbour machines only where the listener table allows it', async () => {
    for (const each of tcpListeners(listeners)) {
      const [{ place }, { port }] = each;
      const [host, through] = [network.nodeAddress, network.neighbour];
      if (place.host === '0.0.0.0') await assertAnswers(each, host, { through });
      else assert.deepEqual(await attempt({ host, port }, '', { through }), refused);
    }
  });

  it("writes the token for kubeling's own commands to a file that only root can read", async () => {
    const { mode, uid } = await stat(join(dir, 'root/loopback-token'));
    assert.deepEqual([mode & 0o777, uid], [0o600, 0]);
    const token = (await readFile(join(dir, 'root/loopback-token'), 'utf8')).trim();
    const port = Number(await readFile(join(dir, 'root/loopback-port'), 'utf8'));
    const headers = `Host: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nConnection: close`;
    const got = await attempt({ host: '127.0.0.1', port }, `GET /pods HTTP/1.1\r\n${headers}\r\n\r\n`, {
      through: network.node,
    });
    assert.match('answer' in got ? got.answer : got.error, /^HTTP\/1\.1 200 /);
  });
});
