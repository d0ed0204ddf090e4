import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { seededRandom } from '../../src/lib/index.ts';
import { CostlyMaker, isFixture } from './costly-requests.ts';
import { type MadeRequest, RequestMaker } from './request-maker.ts';
import type { ServerAnswers } from './request-server.ts';
import { ServedApi } from './served-api.ts';

export interface RequestRoundsOptions {
  readonly requests: number;
  readonly seed: number;
  /** The maximum CPU time of one turn of the server's event loop. */
  readonly mostHoldMs: number;
  readonly tell: (text: string) => void;
}

const atOnce = 16;
/** Rounds of expensive requests and rounds of ordinary random requests alternate. */
const ordinaryPerRound = 245;
const costlyPerRound = 5;
/** One in this many ordinary requests is raw bytes instead of an HTTP request. */
const garbageEvery = 25;
const answerWithinMs = 30_000;
/** The maximum growth of memory after the warm-up; events are stored for a while. */
const mostGrowthBytes = 96 * 2 ** 20;

/**
 * Requests for which kube-apiserver responds with 500 as well, so such a response is no failure.
 */
const saidByOthersToo =
  /"resourceVersion should not be set on objects to be created"|"\[?target\.(?:name|kind): (?:Required|Unsupported) value/;

interface Way {
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly agent: Agent;
}

/**
 * Sends random requests to an API and checks that it responds in time, never fails, and keeps its
 * objects.
 */
export class RequestRounds {
  readonly #options: RequestRoundsOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kubeling-requests-'));
  readonly #codes = new Map<number, number>();
  readonly #failures: string[] = [];
  /** The longest turn of the server's event loop for each request. */
  readonly #holds = new Map<string, number>();

  private constructor(options: RequestRoundsOptions) {
    this.#options = options;
  }

  /** Runs the rounds; throws when a check failed. */
  static async run(options: RequestRoundsOptions): Promise<void> {
    const rounds = new RequestRounds(options);
    try {
      await rounds.#run();
    } finally {
      rmSync(rounds.#directory, { recursive: true, force: true });
    }
  }

  async #run(): Promise<void> {
    const retained = await this.#withApi(async (api) => {
      await this.#ask(api);
      this.#failures.push(...(await api.ask('errors')).map((record) => `logged: ${record}`));
      return await api.ask('kept');
    });
    const found = new Map(await this.#withApi(async (api) => await api.ask('kept')));
    // The API server itself may have changed some objects between the two reads, but no object may
    // be older or missing.
    for (const [key, version] of retained)
      if (!(Number(found.get(key)) >= Number(version)))
        this.#failures.push(`${key} was at ${version}, and is at ${found.get(key)}`);
    this.#report(retained.length);
  }

  async #withApi<T>(work: (api: ServedApi) => Promise<T>): Promise<T> {
    const api = await ServedApi.start(this.#directory);
    try {
      const result = await work(api);
      await api.stop();
      return result;
    } finally {
      api.kill();
    }
  }

  async #ask(api: ServedApi): Promise<void> {
    const way = wayTo(api);
    const random = seededRandom(this.#options.seed);
    const [maker, costly] = [new RequestMaker(random), new CostlyMaker(random)];
    const { requests } = this.#options;
    const tenth = Math.max(ordinaryPerRound, Math.ceil(requests / 10));
    let warmBytes = 0;
    await one(way, namespace());
    for (const made of costly.fixtures()) await this.#answered(way, made);
    await api.ask('hold');
    for (let done = 0; done < requests; done += ordinaryPerRound + costlyPerRound) {
      await this.#ordinary(way, maker, done);
      this.#held('ordinary requests, several at once', await api.ask('hold'));
      // Expensive requests are sent sequentially, so that a slow turn of the event loop can be
      // attributed to its request.
      for (let count = 0; count < costlyPerRound; count++) {
        const created = costly.next();
        await this.#answered(way, created);
        this.#held(created.kind, await api.ask('hold'));
      }
      if (warmBytes === 0 && done >= requests / 4) {
        warmBytes = (await this.#emptied(way, api)).heldBytes;
      }
      if (done % tenth < ordinaryPerRound) {
        this.#options.tell(`${done} requests, ${shownMemory(await this.#emptied(way, api))}`);
      }
    }
    const memory = await this.#emptied(way, api);
    way.agent.destroy();
    this.#options.tell(`${requests} requests, ${shownMemory(memory)}`);
    const growth = memory.heldBytes - warmBytes;
    if (growth > mostGrowthBytes) this.#failures.push(`memory grew by ${Math.round(growth / 2 ** 20)} MiB`);
  }

  /**
   * Sends a given number of requests concurrently; each client sends its next request after a
   * response.
   */
  async #ordinary(way: Way, maker: RequestMaker, from: number): Promise<void> {
    let index = from;
    const ask = async () => {
      while (index < from + ordinaryPerRound) await this.#one(way, maker, index++);
    };
    await Promise.all(Array.from({ length: atOnce }, ask));
  }

  /**
   * Deletes all objects and returns the memory of the server after a garbage collection. The turn
   * of the event loop that collects the garbage is not attributed to any request.
   */
  async #emptied(way: Way, api: ServedApi): Promise<ServerAnswers['memory']> {
    await deleteObjects(way, await api.ask('paths'));
    this.#held('deletion of all objects', await api.ask('hold'));
    const memory = await api.ask('memory');
    await api.ask('hold');
    return memory;
  }

  #held(kind: string, ms: number): void {
    this.#holds.set(kind, Math.max(ms, this.#holds.get(kind) ?? 0));
  }

  async #one(way: Way, maker: RequestMaker, index: number): Promise<void> {
    if (index % garbageEvery === 0) return await garbage(way, maker.garbage());
    await this.#answered(way, maker.next());
  }

  async #answered(way: Way, made: MadeRequest): Promise<void> {
    try {
      const { code, text } = await one(way, made);
      this.#codes.set(code, (this.#codes.get(code) ?? 0) + 1);
      if (code === 500 && !saidByOthersToo.test(text))
        this.#failures.push(`${describe(made)}: ${text.slice(0, 500)}`);
    } catch (error) {
      this.#failures.push(`${describe(made)}: ${error}`);
    }
  }

  #report(objects: number): void {
    const codes = [...this.#codes].sort(([a], [b]) => a - b).map(([code, count]) => `${code}: ${count}`);
    this.#options.tell(`answers by code: ${codes.join(', ')}; ${objects} objects kept`);
    const holds = [...this.#holds].sort(([, a], [, b]) => b - a);
    const shown = holds.slice(0, 25).map(([kind, ms]) => `${ms.toFixed(0)} ms (${kind.slice(0, 80)})`);
    this.#options.tell(`longest turns of the event loop: ${shown.join('; ')}`);
    const { mostHoldMs } = this.#options;
    const all = [
      ...this.#failures,
      ...holds
        .filter(([, ms]) => ms > mostHoldMs)
        .map(([kind, ms]) => `the event loop was held for ${ms.toFixed(0)} ms: ${kind.slice(0, 200)}`),
    ];
    if (all.length === 0) return;
    throw new Error(
      `${all.length} of ${this.#options.requests} requests with the seed ${this.#options.seed} failed:\n${all
        .slice(0, 20)
        .map((each) => each.slice(0, 2_000))
        .join('\n')}`,
    );
  }
}

function wayTo(api: ServedApi): Way {
  return {
    port: Number(new URL(api.url).port),
    cert: api.credential('client-certificate-data'),
    key: api.credential('client-key-data'),
    ca: api.credential('certificate-authority-data'),
    agent: new Agent({ keepAlive: true, maxSockets: atOnce }),
  };
}

/**
 * Deletes all objects except those that expensive requests refer to, so that the memory of the
 * server can be compared.
 */
async function deleteObjects(way: Way, paths: readonly string[]): Promise<void> {
  const headers = { accept: 'application/json' };
  for (const path of paths)
    if (!isFixture(path))
      await one(way, { method: 'DELETE', path: `${path}?gracePeriodSeconds=0`, headers, body: undefined });
}

function shownMemory({ heldBytes, residentBytes }: ServerAnswers['memory']): string {
  const [held, resident] = [heldBytes, residentBytes].map((bytes) => Math.round(bytes / 2 ** 20));
  return `${held} MiB held, ${resident} MiB resident`;
}

function describe({ method, path, headers, body }: MadeRequest): string {
  return `${method} ${path.slice(0, 300)} ${JSON.stringify(headers)} ${body?.toString('latin1').slice(0, 1_500) ?? ''}`;
}

function namespace(): MadeRequest {
  return {
    method: 'POST',
    path: '/api/v1/namespaces',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"metadata":{"name":"fuzz"}}'),
  };
}

/** Sends one request. A client that disconnects during a watch is a valid case too. */
function one(
  way: Way,
  { method, path, headers, body }: MadeRequest,
): Promise<{ code: number; text: string }> {
  return new Promise((resolve, reject) => {
    const size = body === undefined ? {} : { 'content-length': String(body.length) };
    const { port, cert, key, ca, agent } = way;
    const options = { host: '127.0.0.1', port, cert, key, ca, agent, method, path, timeout: answerWithinMs };
    const sent = request({ ...options, headers: { ...headers, ...size } }, (response) => {
      let text = '';
      const code = response.statusCode ?? 0;
      response.on('data', (chunk: Buffer) => {
        if (text.length < 10_000) text += chunk.toString();
        if (path.includes('watch=') && text.length > 2_000) sent.destroy();
      });
      response.on('close', () => resolve({ code, text }));
      response.on('error', () => resolve({ code, text }));
    });
    sent.on('upgrade', (response, socket) => {
      socket.on('error', () => {}).destroy();
      resolve({ code: response.statusCode ?? 0, text: '' });
    });
    sent.on('timeout', () => sent.destroy(new Error('no response arrived in time')));
    sent.on('error', reject);
    sent.end(body);
  });
}

function garbage({ port, cert, key, ca }: Way, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, cert, key, ca });
    socket.setTimeout(200, () => socket.destroy());
    socket.on('error', () => {}).on('close', () => resolve());
    socket.resume();
    socket.end(bytes);
  });
}
