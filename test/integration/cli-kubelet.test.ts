import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { runCli } from '../../src/cli/index.ts';
import { type Clock, realClock, seededRandom } from '../../src/lib/index.ts';
import { aPod } from '../fakes/pods.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import { until } from './containerd-fixture.ts';

const running = (name: string) => ({
  name,
  image: '',
  imageID: '',
  ready: true,
  restartCount: 0,
  containerID: `x://${name}`,
  state: { running: {} },
});

const pod = aPod({
  spec: { containers: [{ name: 'waits' }, { name: 'talks' }] },
  status: { phase: 'Running', containerStatuses: [running('talks')] },
});

type Answer = (call: IncomingMessage, response: ServerResponse) => void;

/** A fake kubelet server, and the CLI commands that call it. */
class FakeKubelet implements AsyncDisposable {
  readonly #server = createServer((call, response) => {
    if (call.url === '/pods') response.end(JSON.stringify({ items: [pod] }));
    else this.answer(call, response);
  });
  readonly #stop = new AbortController();
  readonly dir: string;
  answer: Answer = () => {};
  out = '';
  err = '';

  static async open(): Promise<FakeKubelet> {
    const kubelet = new FakeKubelet(await mkdtemp(join(tmpdir(), 'kubeling-cli-')));
    await writeFile(join(kubelet.dir, 'loopback-token'), 'secret');
    kubelet.#server.listen(0, '127.0.0.1');
    await once(kubelet.#server, 'listening');
    return kubelet;
  }

  private constructor(dir: string) {
    this.dir = dir;
  }

  get place(): readonly string[] {
    const { port } = this.#server.address() as AddressInfo;
    return ['--port', String(port), '--root-dir', this.dir];
  }

  run(clock: Clock, ...argv: readonly string[]): Promise<number> {
    const stdout = new PassThrough();
    stdout.on('data', (text) => {
      this.out += text;
    });
    const writer = (name: 'out' | 'err') => ({
      write: (text: string) => {
        this[name] += text;
      },
    });
    return runCli({
      argv,
      stdout: writer('out'),
      stderr: writer('err'),
      stdio: () => ({ stdin: new PassThrough(), stdout, stderr: new PassThrough() }),
      env: {},
      clock,
      random: seededRandom(1),
      signal: this.#stop.signal,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await rm(this.dir, { recursive: true });
  }
}

function refuse(response: ServerResponse, words: string): void {
  response.statusCode = 400;
  response.end(words);
}

describe('CLI commands that call a kubelet', () => {
  for (const follow of [[], ['-f']]) {
    it(`logs ${follow.join('')} reports a waiting container and shows the logs of the others`, async () => {
      await using kubelet = await FakeKubelet.open();
      let isAsked = false;
      kubelet.answer = ({ url = '' }, response) => {
        if (url.includes('/waits')) return refuse(response, 'it is waiting to start');
        if (isAsked) return refuse(response, 'over');
        isAsked = true;
        response.write('2026-01-01T00:00:00Z here\n');
        if (follow.length === 0) response.end();
      };
      const args = ['web', '--all-containers', '--prefix', ...follow, ...kubelet.place];
      const code = kubelet.run(realClock(), 'logs', ...args);
      await until(
        () => /^\[pod\/web\/talks\] .*here\n/m.test(kubelet.out),
        'the log of the other container is shown',
      );
      await until(
        () => /^kubeling logs: waits: it is waiting to start$/m.test(kubelet.err),
        'the waiting container is reported',
      );
      if (follow.length === 0) assert.equal(await code, 1);
    });
  }

  it('logs stops waiting for a kubelet that does not respond', async () => {
    await using kubelet = await FakeKubelet.open();
    const clock = new VirtualClock();
    let isAsked = false;
    kubelet.answer = () => {
      isAsked = true;
    };
    const code = kubelet.run(clock, 'logs', 'web', '-c', 'talks', ...kubelet.place);
    await until(() => isAsked, 'the log is requested');
    await clock.advance(11_000);
    assert.equal(await code, 1);
    assert.match(kubelet.err, /Cannot get a response from the kubelet within 10000 ms/);
  });

  it('logs backs off when following a log is rejected, and reports the rejection', async () => {
    await using kubelet = await FakeKubelet.open();
    const clock = new VirtualClock();
    let requestCount = 0;
    kubelet.answer = (_call, response) => {
      requestCount++;
      if (requestCount > 1) return refuse(response, 'not any more');
      response.write('2026-01-01T00:00:00Z here\n');
      response.socket?.end();
    };
    void kubelet.run(clock, 'logs', '-f', 'web', '-c', 'talks', ...kubelet.place);
    await until(async () => {
      await clock.advance(250);
      return kubelet.err !== '';
    }, 'the failure is reported');
    assert.match(
      kubelet.err,
      /^kubeling logs: Cannot read more of the log of talks, retrying: not any more\n$/,
    );
    const before = requestCount;
    for (let count = 0; count < 40; count++) {
      await clock.advance(250);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert(requestCount - before <= 4, `requested ${requestCount - before} times within 10 s`);
  });

  for (const command of [['explain'], ['logs', 'web'], ['exec', 'web', '--', 'true']]) {
    it(`${command[0]} fails without calling another kubelet when the kubelet of the data directory does not run`, async () => {
      await using kubelet = await FakeKubelet.open();
      const [name = '', ...words] = command;
      const dataDir = join(kubelet.dir, 'data');
      const run = () => kubelet.run(realClock(), name, '--data-dir', dataDir, ...words);
      assert.equal(await run(), 1);
      assert.match(kubelet.err, /data directory \S+\/data: the directory does not exist/);
      await mkdir(dataDir);
      const state = { runtime: 'private', endpoint: 'x', port: Number(kubelet.place[1]) };
      await writeFile(join(dataDir, 'up.json'), JSON.stringify(state));
      assert.equal(await run(), 1);
      assert.match(kubelet.err, /\/data: kubeling is not up there/);
    });
  }
});
