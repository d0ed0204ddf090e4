import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { unshareRoot } from '../../src/cli/run/kubelet-directories.ts';
import { realClock } from '../../src/lib/index.ts';
import { nodeConfig } from '../cluster/node-config.ts';
import { CertificateFolder, type KeyPair } from '../fakes/certificate-authority.ts';
import { withoutLockWaiters } from '../fakes/lock-waiters.ts';
import { call } from '../fakes/tls-node.ts';
import { freePorts } from '../free-ports.ts';
import { eventually } from '../kubeling-node.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../private-runtime.ts';

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));

/**
 * Receives notifications like a service manager: prints each datagram with the process ID of its
 * sender.
 */
const receiver = `
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1])
print("listening", flush=True)
while True:
    data, control, _, _ = s.recvmsg(4096, 256)
    print(struct.unpack("iii", control[0][2][:12])[0], data.decode(), flush=True)
`;

describe('kubeling run on a standalone node', { timeout: 240_000 }, () => {
  let runtime: PrivateRuntime;
  let folder: CertificateFolder;
  let alice: KeyPair;
  let dir: string;
  let port: number;
  let healthzPort: number;
  const children: ChildProcess[] = [];

  before(async () => {
    runtime = await openPrivateRuntime();
    folder = new CertificateFolder();
    const authority = folder.authority('/CN=ca');
    alice = authority.issue({ subject: '/CN=alice' });
    dir = await mkdtemp(join(tmpdir(), 'klg-alone-'));
    [port = 0, healthzPort = 0] = await freePorts(2);
    await mkdir(join(dir, 'manifests'));
    await writeFile(join(dir, 'ca.crt'), authority.pem);
    const { cgroup: cgroupRoot, socket: runtimeSocket } = runtime.containerd.layout;
    const paths = { manifestDir: join(dir, 'manifests'), podLogsDir: join(dir, 'logs'), clientCaFile: '' };
    const config = nodeConfig(
      { ...paths, cgroupRoot, runtimeSocket, port, healthzPort },
      {
        authentication: {
          anonymous: { enabled: false },
          webhook: { enabled: false },
          x509: { clientCAFile: join(dir, 'ca.crt') },
        },
        authorization: { mode: 'AlwaysAllow' },
        cgroupsPerQOS: false,
        enforceNodeAllocatable: [],
      },
    );
    await writeFile(join(dir, 'config.json'), JSON.stringify(config));
  });

  after(async () => {
    for (const child of children) {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGKILL');
        await gone;
      }
    }
    await runtime?.[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
    await unshareRoot(join(dir, 'root'), realClock(), new AbortController().signal);
    await rm(dir, { recursive: true, force: true });
  });

  function start(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', file, ...args], {
      env: { ...process.env, ...env },
    });
    children.push(child);
    const output = { text: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => {
        output.text += chunk;
      });
    }
    const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
    return { child, said: output, ended };
  }

  function run(env: Readonly<Record<string, string>> = {}, ...flags: readonly string[]) {
    const args = ['run', `--config=${dir}/config.json`, `--root-dir=${dir}/root`, `--cert-dir=${dir}/pki`];
    return start(kubeling, [...args, '--hostname-override=alone', ...flags], env);
  }

  async function healthy(told: () => string): Promise<void> {
    const answers = async () => (told().includes('Serving kubelet on loopback') ? true : undefined);
    await eventually('kubeling to respond', answers, 60_000, told);
    const url = `http://127.0.0.1:${healthzPort}/healthz?verbose`;
    const page = await eventually(
      'kubeling to be healthy',
      async () => {
        const response = await fetch(url).catch(() => undefined);
        return response?.ok === true ? await response.text() : undefined;
      },
      60_000,
      told,
    );
    for (const name of ['ping', 'log', 'syncloop'])
      assert.match(page, new RegExp(`^\\[\\+\\]${name} ok$`, 'm'));
  }

  it('serves over TLS to clients it authenticates itself, notifies its service manager, and exits with 0 on SIGTERM', async () => {
    const socket = join(dir, 'notify');
    const manager = start('python3', ['-c', receiver, socket]);
    await eventually('the manager', async () => (manager.said.text.includes('listening') ? true : undefined));
    const env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '4000000' };
    const { child, said, ended } = run(env, '--notify-ready=ready');
    await healthy(() => said.text);
    assert.equal((await call({ port }, '/pods', {})).status, 401);
    assert.equal((await call({ port }, '/pods', alice)).status, 200);
    assert.match((await call({ port }, '/statusz', alice)).body, /Binary version: 1\.36/);
    assert.match((await call({ port }, '/flagz', alice)).body, /^hostname-override=alone$/m);
    assert.match((await call({ port }, '/metrics', alice)).body, /^kubernetes_feature_enabled\{name="/m);
    assert.match((await call({ port }, '/stats/summary', alice)).body, /"nodeName":"alone"/);
    child.kill('SIGHUP');
    const reread = async () => (said.text.includes('Reloaded configuration') ? true : undefined);
    await eventually('the configuration to be reloaded', reread, 60_000, () => said.text);
    for (const state of ['READY=1', 'WATCHDOG=1']) {
      const heard = new RegExp(`^${child.pid} ${state}`, 'm');
      await eventually(
        `${state} to be received`,
        async () => (heard.test(manager.said.text) ? true : undefined),
        60_000,
        () => manager.said.text,
      );
    }
    child.kill('SIGTERM');
    assert.equal(await ended, 0, said.text);
  });

  it('serves the configured read-only port even when it cannot authenticate any client', async () => {
    const [readOnlyPort = 0] = await freePorts(1);
    const { child, said, ended } = run({}, '--client-ca-file=', `--read-only-port=${readOnlyPort}`);
    await healthy(() => said.text);
    const read = async (path: string) => (await fetch(`http://127.0.0.1:${readOnlyPort}${path}`)).status;
    assert.deepEqual([await read('/pods'), await read('/configz')], [200, 404]);
    child.kill('SIGTERM');
    assert.equal(await ended, 0, said.text);
  });

  const skip = withoutLockWaiters();
  it('runs exclusively with a lock file, and exits when another process waits for the lock if so configured', {
    skip,
  }, async () => {
    const lock = join(dir, 'lock');
    const first = run({}, `--lock-file=${lock}`, '--exit-on-lock-contention');
    await healthy(() => first.said.text);
    const second = run({}, `--lock-file=${lock}`);
    assert.equal(await first.ended, 0, first.said.text);
    assert.match(first.said.text, /release lock/);
    await healthy(() => second.said.text);
    second.child.kill('SIGTERM');
    assert.equal(await second.ended, 0);
    assert.equal(await readFile(lock, 'utf8'), '');
  });

  it('fails to start with an invalid watchdog interval', async () => {
    const { said, ended } = run({ WATCHDOG_USEC: '1000' });
    assert.equal(await ended, 1);
    assert.match(said.text, /WATCHDOG_USEC must be over/);
  });
});
