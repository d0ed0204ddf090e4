import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { KubectlApi } from '../fakes/kubectl-api.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { withoutKubectl } from '../local-api/tour-commands.ts';
import { skipReason } from './containerd-fixture.ts';

const kubeling = fileURLToPath(new URL('../../kubeling', import.meta.url));
const megabytes = 100_000_000;

const serve = `
mkdir -p /www/cgi-bin
cat > /www/cgi-bin/sum <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
head -c $CONTENT_LENGTH | sha256sum
END
chmod +x /www/cgi-bin/sum
echo hello > /www/index.html
trap 'exit 0' TERM
httpd -p 80 -h /www
while true; do echo tick; sleep 0.2; done`;

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'box' },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'main',
        image: busyboxImageName,
        command: ['sh', '-c', serve],
        ports: [{ name: 'http', containerPort: 80 }],
      },
      {
        name: 'echo',
        image: busyboxImageName,
        stdin: true,
        command: ['sh', '-c', 'while read line; do echo "got $line"; echo "err $line" >&2; done; sleep 1000'],
      },
      { name: 'screen', image: busyboxImageName, stdin: true, tty: true, command: ['sh'] },
    ],
  },
};

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A child process whose output is collected; it is killed when disposed. */
class Running implements Disposable {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out = '';
  err = '';

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.child = spawn(program, args, { env, stdio: 'pipe' });
    this.child.stdin?.on('error', () => {});
    this.child.stdout?.on('data', (chunk) => {
      this.out += String(chunk);
    });
    this.child.stderr?.on('data', (chunk) => {
      this.err += String(chunk);
    });
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code) => resolve({ code, out: this.out, err: this.err }));
    });
  }

  says(what: RegExp): Promise<RegExpExecArray> {
    const look = async () => what.exec(this.out + this.err) ?? undefined;
    return eventually(`it to print ${what}`, look, 120_000, () => `${this.out}\n${this.err}`);
  }

  [Symbol.dispose](): void {
    this.child.kill('SIGKILL');
  }
}

/**
 * A message that kubectl before 1.33 may log: it may receive the empty first message of a session
 * before it has created its streams.
 */
const notYetRead = /^E.*Unknown stream id 1, discarding message\n/;

async function finish(running: Running, input: string | Buffer = ''): Promise<Ended> {
  using child = running;
  child.child.stdin?.end(input);
  return await child.ended;
}

describe('exec, attach and port-forward to the pods of a node', {
  timeout: 280_000,
  skip: skipReason(),
}, () => {
  let node: KubelingNode;
  let port = 0;
  let token = '';

  before(async () => {
    node = await KubelingNode.open();
    await node.put('box.yaml', pod);
    await node.running('box');
    await readAccess();
  });

  after(async () => {
    assert.deepEqual(await node?.leave(), []);
  });

  async function readAccess(): Promise<void> {
    port = JSON.parse(await readFile(join(node.dataDir, 'up.json'), 'utf8')).port;
    token = (await readFile(join(node.dataDir, 'kubelet', 'loopback-token'), 'utf8')).trim();
  }

  const cli = (command: string, ...args: readonly string[]) =>
    new Running(kubeling, [command, '--data-dir', node.dataDir, ...args]);
  const podName = async () => (await node.pod('box'))?.metadata.name ?? '';

  it('exec runs a command with stdin, stdout, stderr and its exit code', async () => {
    const script = 'read line; echo "out $line"; echo "err $line" >&2; exit 7';
    const ended = await finish(cli('exec', '-i', '-c', 'main', 'box', '--', 'sh', '-c', script), 'hello\n');
    assert.deepEqual(ended, { code: 7, out: 'out hello\n', err: 'err hello\n' });
    const defaulted = await finish(cli('exec', 'box', '--', 'true'));
    assert.deepEqual(defaulted, {
      code: 0,
      out: '',
      err: 'Defaulted container "main" out of: main, echo, screen\n',
    });
  });

  it('exec forwards the end of input, and any bytes unchanged', async () => {
    const bytes = randomBytes(5_000_000);
    const { out, code } = await finish(cli('exec', '-i', '-c', 'main', 'box', '--', 'sha256sum'), bytes);
    assert.equal(out.split(' ')[0], createHash('sha256').update(bytes).digest('hex'));
    assert.equal(code, 0);
  });

  it('exec, attach and port-forward report errors', async () => {
    const nobody = await finish(cli('exec', 'nobody', '--', 'true'));
    assert.equal(nobody.code, 1);
    assert.match(nobody.err, /no pod "nobody" on this node; there are: box-/);
    const program = await finish(cli('exec', '-c', 'main', 'box', '--', 'no-such-program'));
    assert.equal(program.code, 1);
    assert.match(program.err, /"no-such-program": executable file not found/);
    assert.match((await finish(cli('exec', 'box', 'true'))).err, /after "--"/);
    assert.equal(
      (await fetch(`http://127.0.0.1:${port}/run/default/x/y?cmd=id`, { method: 'POST' })).status,
      401,
    );
  });

  it('the streaming server serves health without the token, everything else only with the token, and rejects foreign Host and Origin headers', async () => {
    const statusOf = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      new Promise<number | undefined>((resolve, reject) => {
        const call = request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        call.on('error', reject);
        call.end();
      });
    const bearer = { authorization: `Bearer ${token}` };
    const closed = ['/pods', '/runningpods/', '/metrics', '/metrics/probes', '/debug/flight', '/nothing'];
    for (const path of closed) {
      assert.equal(await statusOf(path), 401, path);
      assert.equal(await statusOf(path, bearer), path === '/nothing' ? 404 : 200, path);
    }
    for (const path of ['/healthz', '/healthz/ping', '/livez', '/readyz']) {
      assert.equal(await statusOf(path), 200, path);
      assert.equal(await statusOf(path, { host: `rebound.example:${port}` }), 403, path);
    }
    assert.equal(await statusOf('/pods', { ...bearer, host: `rebound.example:${port}` }), 403);
    assert.equal(await statusOf('/pods', { ...bearer, origin: 'http://page.example' }), 403);
    for (const host of [`localhost:${port}`, `[::1]:${port}`, hostname().toLowerCase()])
      assert.equal(await statusOf('/pods', { ...bearer, host }), 200, host);
  });

  it('the /run endpoint runs a command and returns its output', async () => {
    const run = (cmd: string) =>
      fetch(`http://127.0.0.1:${port}/run/default/${name}/main?cmd=${encodeURIComponent(cmd)}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
      });
    const name = await podName();
    assert.equal(await (await run('echo one two')).text(), 'one two\n');
    const failed = await run('ls /nowhere');
    assert.equal(failed.status, 500);
    assert.match(await failed.text(), /^command 'ls \/nowhere' exited with 1: /);
  });

  it("exec passes the caller's terminal to the process, with its size and size changes", {
    skip: existsSync('/usr/bin/script') ? false : 'needs script',
  }, async () => {
    const awaits = (size: string) => `while [ "$(stty size 2>/dev/null)" != "${size}" ]; do sleep 0.1; done`;
    const inside = `${awaits('33 111')}; echo first-size; ${awaits('44 122')}; echo second-size; exit 9`;
    const exec = `${kubeling} exec --data-dir ${node.dataDir} -it -c main box -- sh -c '${inside}'`;
    const outside = `tty; stty rows 33 cols 111; exec ${exec}`;
    using child = new Running('script', ['-qec', outside, '/dev/null'], {
      ...process.env,
      SHELL: '/bin/sh',
    });
    const [terminal] = await child.says(/\/dev\/pts\/\d+/);
    await child.says(/first-size\r\n/);
    await finish(new Running('stty', ['-F', terminal, 'rows', '44', 'cols', '122']));
    await child.says(/second-size\r\n/);
    const { code } = await child.ended;
    assert.equal(code, 9);
  });

  it('attach connects to the output and input of a running process', async () => {
    using ticks = cli('attach', '-c', 'main', 'box');
    await ticks.says(/tick\ntick\n/);
    ticks.child.kill('SIGINT');
    assert.equal((await ticks.ended).code, 130);
    using echo = cli('attach', '-i', '-c', 'echo', 'box');
    echo.child.stdin?.write('one\n');
    await echo.says(/got one\n/);
    await echo.says(/err one\n/);
    echo.child.stdin?.write('two\n');
    await echo.says(/got two\n/);
  });

  it('exec ends when the reader of its output has exited, and when the command exits without reading its input', async () => {
    const exec = `'${kubeling}' exec --data-dir '${node.dataDir}' -c main`;
    const codes = 'echo "${PIPESTATUS[*]}"';
    const head = new Running('bash', ['-c', `${exec} box -- yes | head -n 1; ${codes}`]);
    assert.deepEqual(await finish(head), { code: 0, out: 'y\n0 0\n', err: '' });
    // The runtime may or may not report the exit code of a process with unread input.
    const flood = await finish(new Running('bash', ['-c', `yes | ${exec} -i box -- true; ${codes}`]));
    if (flood.err === '') assert.match(flood.out, /^\d+ 0\n$/);
    else assert.match(`${flood.out}${flood.err}`, /^\d+ 1\nkubeling exec: .*(exit code is unknown|broke)/);
  });

  it('exec and attach report why a container cannot be entered', async () => {
    const waits = { name: 'main', image: 'nowhere.invalid/x:1', imagePullPolicy: 'Never' };
    await node.put('waits.yaml', { ...pod, metadata: { name: 'waits' }, spec: { containers: [waits] } });
    await eventually('the reason', async () => {
      const { err } = await finish(cli('exec', 'waits', '--', 'true'));
      return /container not found \("main"\); the container main is waiting to be started: ErrImageNeverPull/.test(
        err,
      )
        ? true
        : undefined;
    });
    await node.take('waits.yaml');
  });

  it('exec and attach reject a terminal and input for a container that has none', async () => {
    using child = cli('attach', '-it', '-c', 'main', 'box');
    await child.says(/accepts no input[\s\S]*did not allocate one/);
  });

  it('exec forwards a hundred megabytes unchanged in each direction', async () => {
    const created = `head -c ${megabytes} /dev/urandom > /www/big; sha256sum < /www/big`;
    const { out } = await finish(cli('exec', '-c', 'main', 'box', '--', 'sh', '-c', created));
    using child = cli('port-forward', 'box', ':http');
    const [, local] = await child.says(/Forwarding from 127\.0\.0\.1:(\d+) -> 80/);
    const hash = createHash('sha256');
    const response = await fetch(`http://127.0.0.1:${local}/big`);
    for await (const chunk of response.body ?? []) hash.update(chunk);
    assert.equal(hash.digest('hex'), out.split(' ')[0]);
    const body = randomBytes(megabytes);
    const sum = await fetch(`http://127.0.0.1:${local}/cgi-bin/sum`, { method: 'POST', body });
    assert.equal((await sum.text()).trim().split(' ')[0], createHash('sha256').update(body).digest('hex'));
    child.child.kill('SIGINT');
    assert.equal((await child.ended).code, 0);
  });

  it('port-forward serves many concurrent connections, and reports a port without a listener', async () => {
    using child = cli('port-forward', 'box', ':80', ':81', '--address', '127.0.0.1');
    const [, local] = await child.says(/127\.0\.0\.1:(\d+) -> 80/);
    const [, deaf] = await child.says(/127\.0\.0\.1:(\d+) -> 81/);
    const pages = await Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(`http://127.0.0.1:${local}/`)).text()),
    );
    assert.deepEqual(new Set(pages), new Set(['hello\n']));
    await assert.rejects(fetch(`http://127.0.0.1:${deaf}/`));
    await child.says(/Cannot forward to port 81: .*connection refused/);
    assert.equal(await (await fetch(`http://127.0.0.1:${local}/`)).text(), 'hello\n');
  });

  /**
   * Opens an exec WebSocket and collects the received messages by channel until the socket is
   * closed.
   */
  async function converse(
    protocol: string,
    query: string,
    talk: (socket: WebSocket) => void,
  ): Promise<{ readonly said: Record<number, string>; readonly protocol: string; readonly code: number }> {
    const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
    const url = `ws://127.0.0.1:${port}/exec/default/${await podName()}/main?${query}`;
    const socket = new WebSocket(url, [protocol, bearer]);
    socket.binaryType = 'arraybuffer';
    const output: Record<number, string> = {};
    return await new Promise((resolve, reject) => {
      socket.addEventListener('open', () => talk(socket));
      socket.addEventListener('error', () => reject(new Error('the WebSocket failed')));
      socket.addEventListener('message', ({ data }) => {
        const bytes = Buffer.from(data);
        const channel = bytes[0] ?? -1;
        output[channel] = (output[channel] ?? '') + bytes.subarray(1).toString();
      });
      socket.addEventListener('close', ({ code }) =>
        resolve({ said: output, protocol: socket.protocol, code }),
      );
    });
  }

  it('exec supports WebSocket protocol v5, in which streams can be closed separately', async () => {
    const script = 'cat; echo err >&2; exit 3';
    const query = new URLSearchParams({ input: '1', output: '1', error: '1' });
    for (const word of ['sh', '-c', script]) query.append('command', word);
    const { said, protocol, code } = await converse('v5.channel.k8s.io', String(query), (socket) => {
      socket.send(Buffer.from('\0hello '));
      socket.send(Buffer.from('\0world'));
      socket.send(Buffer.from([255, 0]));
    });
    assert.equal(protocol, 'v5.channel.k8s.io');
    assert.equal(code, 1000);
    const { 3: status = '', ...outputs } = said;
    assert.deepEqual(outputs, { 1: 'hello world', 2: 'err\n' });
    const { reason, details } = JSON.parse(status);
    const cause = { reason: 'ExitCode', message: '3' };
    assert.deepEqual([reason, details?.causes[0]], ['NonZeroExitCode', cause], status);
  });

  it('exec with an older WebSocket protocol is forwarded to the runtime', async () => {
    for (const protocol of ['channel.k8s.io', 'v4.channel.k8s.io']) {
      const query = 'output=1&error=1&command=echo&command=hello';
      const { said, protocol: agreed } = await converse(protocol, query, () => {});
      assert.equal(agreed, protocol);
      assert.equal(said[1], 'hello\n');
    }
  });

  it('kubectl exec and port-forward work over WebSocket and SPDY', { skip: withoutKubectl() }, async () => {
    await using api = await KubectlApi.open({ port, token });
    const name = await podName();
    const env = { ...process.env, HOME: node.dataDir, KUBECONFIG: '/dev/null' };
    const kubectl = (...args: readonly string[]) =>
      new Running('kubectl', ['--server', api.url, ...args], env);
    const exec = ['exec', '-i', name, '-c', 'main', '--', 'sh', '-c', 'cat; echo err >&2; exit 4'];
    const byWebSocket = { code: 4, out: 'hello', err: 'err\ncommand terminated with exit code 4\n' };
    const { err, ...heard } = await finish(kubectl(...exec), 'hello');
    assert.deepEqual({ ...heard, err: err.replace(notYetRead, '') }, byWebSocket);
    assert.match(api.spoken.at(-1) ?? '', /v5\.channel\.k8s\.io/);
    const plain = { ...env, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' };
    const bySpdy = await finish(new Running('kubectl', ['--server', api.url, ...exec], plain), 'hello');
    assert.deepEqual(bySpdy, byWebSocket);
    assert.equal(api.spoken.at(-1), 'SPDY/3.1');
    for (const setting of ['true', 'false']) {
      const chosen = { ...env, KUBECTL_PORT_FORWARD_WEBSOCKETS: setting };
      using forward = new Running('kubectl', ['--server', api.url, 'port-forward', name, ':80'], chosen);
      const [, local] = await forward.says(/127\.0\.0\.1:(\d+) -> 80/);
      const pages = Array.from({ length: 10 }, async () =>
        (await fetch(`http://127.0.0.1:${local}/`)).text(),
      );
      assert.deepEqual(new Set(await Promise.all(pages)), new Set(['hello\n']));
      assert.match(api.spoken.at(-1) ?? '', setting === 'true' ? /^SPDY\/3\.1\+portforward/ : /^SPDY\/3\.1$/);
    }
  });

  it('exec ends when kubeling is killed, without leaving stuck processes', async () => {
    const before = (await node.containersOf('box')).map(({ id }) => id).toSorted();
    using child = cli('exec', '-c', 'main', 'box', '--', 'sh', '-c', 'echo begun; sleep 1000');
    using forward = cli('port-forward', 'box', ':80');
    const [, local] = await forward.says(/127\.0\.0\.1:(\d+) -> 80/);
    await child.says(/begun/);
    await node.end('SIGKILL');
    const { code, err } = await child.ended;
    assert.equal(code, 1);
    assert.match(err, /broke/);
    await assert.rejects(fetch(`http://127.0.0.1:${local}/`));
    await node.start();
    await node.running('box');
    await readAccess();
    assert.equal((await finish(cli('exec', '-c', 'main', 'box', '--', 'echo', 'again'))).out, 'again\n');
    assert.equal(await (await fetch(`http://127.0.0.1:${local}/`)).text(), 'hello\n');
    assert.deepEqual((await node.containersOf('box')).map(({ id }) => id).toSorted(), before);
  });
});
