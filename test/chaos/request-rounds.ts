import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { collectLogs, realClock, seededRandom, systemRandom, Verbosity } from '../../src/lib/index.ts';
import { makeCatalogue } from '../../src/local-api/core/catalogue.ts';
import { type OpenLocalApi, openLocalApi } from '../../src/local-api/index.ts';
import { type MadeRequest, RequestMaker } from './request-maker.ts';

export interface RequestRoundsOptions {
  readonly requests: number;
  readonly seed: number;
  readonly tell: (text: string) => void;
}

const atOnce = 16;
/** One in so many is no request at all, but bytes. */
const garbageEvery = 25;
const answerWithinMs = 30_000;
/** What may be held at the end beyond what was held when all was warm; what happened is remembered for a while. */
const mostGrowthBytes = 96 * 2 ** 20;

/** Refusals for which the reference answers 500 as well; they are no failures. */
const saidByOthersToo =
  /"resourceVersion should not be set on objects to be created"|"\[?target\.(?:name|kind): (?:Required|Unsupported) value/;

interface Way {
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly agent: Agent;
}

/** Asks an API for anything, again and again, and holds it to this: it answers, it never fails, and it keeps what it had. */
export class RequestRounds {
  readonly #options: RequestRoundsOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kubeling-requests-'));
  readonly #logs = collectLogs(realClock(), new Verbosity(0));
  readonly #codes = new Map<number, number>();
  readonly #failures: string[] = [];

  private constructor(options: RequestRoundsOptions) {
    this.#options = options;
  }

  /** Throws when something did not hold. */
  static async run(options: RequestRoundsOptions): Promise<void> {
    const rounds = new RequestRounds(options);
    try {
      await rounds.#run();
    } finally {
      rmSync(rounds.#directory, { recursive: true, force: true });
    }
  }

  async #run(): Promise<void> {
    const kept = await this.#withApi(async (api) => {
      await this.#ask(api);
      return everything(api);
    });
    const found = await this.#withApi(async (api) => everything(api));
    // The server itself may have changed some since then, but none may be older or gone.
    for (const [key, version] of kept)
      if (!(Number(found.get(key)) >= Number(version)))
        this.#failures.push(`${key} was at ${version}, and is at ${found.get(key)}`);
    this.#report(kept.size);
  }

  async #withApi<T>(work: (api: OpenLocalApi) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    await using api = await openLocalApi(this.#apiOptions(), stop.signal);
    const running = api.run(stop.signal).catch(() => {});
    try {
      return await work(api);
    } finally {
      stop.abort(new Error('the round is over'));
      await running;
    }
  }

  #apiOptions(): Parameters<typeof openLocalApi>[0] {
    return {
      directory: join(this.#directory, 'data'),
      adminKubeconfig: join(this.#directory, 'admin.kubeconfig'),
      listen: { host: '127.0.0.1', port: 0 },
      nodeName: 'node',
      hostnames: () => [],
      addresses: () => [],
      kubeletAt: () => undefined,
      exposeMetrics: async () => 'up 1\n',
      version: { kubernetes: '1.36.4', own: '0.0.0' },
      sockets: { handshakeProblem: () => 'not here', serveWebSocket: async () => {}, relay: async () => {} },
      clock: realClock(),
      random: systemRandom(),
      logger: this.#logs.logger,
    };
  }

  async #ask(api: OpenLocalApi): Promise<void> {
    const way = this.#wayTo(api);
    const maker = new RequestMaker(seededRandom(this.#options.seed));
    const { requests } = this.#options;
    const tenth = Math.max(atOnce, Math.ceil(requests / 10));
    let warmBytes = 0;
    await one(way, namespace());
    for (let done = 0; done < requests; done += atOnce) {
      const batch = Array.from({ length: atOnce }, (_, index) => this.#one(way, maker, done + index));
      await Promise.all(batch);
      if (warmBytes === 0 && done >= requests / 4) warmBytes = heldBytes();
      if (done % tenth < atOnce) this.#options.tell(`${done} requests, ${memory()}`);
    }
    way.agent.destroy();
    const growth = heldBytes() - warmBytes;
    if (growth > mostGrowthBytes) this.#failures.push(`memory grew by ${Math.round(growth / 2 ** 20)} MiB`);
  }

  async #one(way: Way, maker: RequestMaker, index: number): Promise<void> {
    if (index % garbageEvery === 0) return await garbage(way, maker.garbage());
    const made = maker.next();
    try {
      const { code, text } = await one(way, made);
      this.#codes.set(code, (this.#codes.get(code) ?? 0) + 1);
      if (code === 500 && !saidByOthersToo.test(text))
        this.#failures.push(`${describe(made)}: ${text.slice(0, 500)}`);
    } catch (error) {
      this.#failures.push(`${describe(made)}: ${error}`);
    }
  }

  #wayTo({ url }: OpenLocalApi): Way {
    const config = readFileSync(join(this.#directory, 'admin.kubeconfig'), 'utf8');
    const part = (name: string) => {
      const found = new RegExp(`${name}: "?([A-Za-z0-9+/=]+)`).exec(config)?.[1];
      if (found === undefined) throw new Error(`There is no ${name} in the kubeconfig`);
      return Buffer.from(found, 'base64').toString();
    };
    return {
      port: Number(new URL(url).port),
      cert: part('client-certificate-data'),
      key: part('client-key-data'),
      ca: part('certificate-authority-data'),
      agent: new Agent({ keepAlive: true, maxSockets: atOnce }),
    };
  }

  #report(objects: number): void {
    const codes = [...this.#codes].sort(([a], [b]) => a - b).map(([code, count]) => `${code}: ${count}`);
    this.#options.tell(`answers by code: ${codes.join(', ')}; ${objects} objects kept`);
    const bugs = [...this.#logs.records].filter(({ severity }) => severity === 'error');
    const all = [...this.#failures, ...bugs.map((record) => `logged: ${JSON.stringify(record)}`)];
    if (all.length === 0) return;
    const shown = all.slice(0, 20).join('\n');
    throw new Error(
      `Of ${this.#options.requests} requests with the seed ${this.#options.seed}, ${all.length} went wrong:\n${shown}`,
    );
  }
}

/** Versions by what they are of: enough to tell whether all is there. */
function everything({ objects }: OpenLocalApi): Map<string, string> {
  const found = new Map<string, string>();
  for (const { resource } of makeCatalogue({}).all.filter((entry) => entry.kept === 'stored'))
    for (const { metadata } of objects.all(resource))
      if (metadata.deletionTimestamp === undefined)
        found.set(
          `${resource.plural} ${metadata.namespace ?? ''}/${metadata.name}`,
          metadata.resourceVersion,
        );
  return found;
}

function heldBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

function memory(): string {
  const held = Math.round(heldBytes() / 2 ** 20);
  return `${held} MiB held, ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB resident`;
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

/** Who leaves in the middle of a watch is a client like any other. */
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
    sent.on('timeout', () => sent.destroy(new Error('there was no answer in time')));
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
