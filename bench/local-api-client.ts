import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerFigures, ServerPlace } from './local-api-server.ts';
import type { ToWatchers, WishedWatch } from './local-api-watchers.ts';

export interface Answer {
  readonly status: number;
  readonly bytes: number;
  readonly text: () => string;
}

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The address of the API, and the credentials of the client. */
export interface WayIn {
  readonly host: string;
  readonly port: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A watch that only counts the lines it receives. */
export interface CountedWatch {
  /** The number of lines received so far. */
  readonly lines: () => number;
  /** Resolves when the watch has ended, completely or by a broken connection. */
  readonly ended: Promise<'whole' | 'broken off'>;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** Opens a watch; resolves when the server has sent its response headers. */
export function openWatch(way: WayIn, { path, accept }: WishedWatch): Promise<CountedWatch> {
  return new Promise((resolve, reject) => {
    const asked = request({ ...way, agent: false, path, headers: { accept } }, (reply) => {
      let lines = 0;
      reply.on('data', (chunk: Buffer) => {
        for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
      });
      const ended = new Promise<'whole' | 'broken off'>((settle) => {
        reply.on('error', () => {});
        reply.on('close', () => settle(reply.complete ? 'whole' : 'broken off'));
      });
      if (reply.statusCode !== 200) reject(new Error(`Cannot watch: HTTP status ${reply.statusCode}`));
      resolve({
        lines: () => lines,
        ended,
        pause: () => void reply.pause(),
        resume: () => void reply.resume(),
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** The Node.js flags with which kubeling is started. */
const asItRuns = [
  '--single-threaded',
  '--max-semi-space-size=16',
  '--no-flush-bytecode',
  '--no-memory-reducer',
  '--expose-gc',
];

/** An embedded API in a separate process, and the credentials of its administrator. */
export class ServerUnderTest implements AsyncDisposable {
  readonly way: WayIn;
  readonly #child: ChildProcess;
  readonly #directory: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  private constructor(child: ChildProcess, directory: string, way: WayIn) {
    this.way = way;
    this.#child = child;
    this.#directory = directory;
  }

  static async open(at: string | undefined, execArgv: readonly string[]): Promise<ServerUnderTest> {
    const directory = await mkdtemp(join(at ?? tmpdir(), 'bench-local-api-'));
    const child = fork(join(import.meta.dirname, 'local-api-server.ts'), [directory], {
      execArgv: [...asItRuns, ...execArgv],
    });
    const [place] = (await once(child, 'message')) as [ServerPlace];
    const pem = await readFile(join(place.pki, 'admin.pem'), 'utf8');
    const ca = await readFile(join(place.pki, 'ca.crt'), 'utf8');
    const { hostname: host, port } = new URL(place.url);
    return new ServerUnderTest(child, directory, { host, port, ca, cert: pem, key: pem });
  }

  async figures(after: 'as-it-is' | 'collected' = 'as-it-is'): Promise<ServerFigures> {
    const response = once(this.#child, 'message');
    this.#child.send(after === 'collected' ? 'collect' : 'figures');
    const [figures] = (await response) as [ServerFigures];
    return figures;
  }

  /** Sends a request and throws unless the response is a success. */
  async must(asked: Asked): Promise<Answer> {
    const response = await this.#ask(asked);
    if (response.status >= 300)
      throw new Error(
        `Cannot ${asked.method} ${asked.path}: HTTP status ${response.status}: ${response.text()}`,
      );
    return response;
  }

  #ask({ method, path, body, headers = {} }: Asked): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json';
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, method, path, headers: { 'content-type': type, ...headers } };
      const asked = request({ ...this.way, ...options }, (reply) => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.on('end', () => {
          const { statusCode: status = 0 } = reply;
          const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
          resolve({ status, bytes, text: () => Buffer.concat(chunks).toString() });
        });
        reply.on('error', reject);
      });
      asked.on('error', reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    const gone = once(this.#child, 'exit');
    if (this.#child.exitCode === null) {
      this.#child.disconnect();
      await gone;
    }
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Many watches, opened by a separate process. */
export class Watchers implements Disposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async open(way: WayIn, watches: readonly WishedWatch[]): Promise<Watchers> {
    const child = fork(join(import.meta.dirname, 'local-api-watchers.ts'));
    const watchers = new Watchers(child);
    await watchers.#ask({ do: 'open', way, watches });
    return watchers;
  }

  /** The number of lines that each watch has received. */
  async lines(): Promise<readonly number[]> {
    return await this.#ask({ do: 'count' });
  }

  async #ask(asked: ToWatchers): Promise<readonly number[]> {
    const response = once(this.#child, 'message');
    this.#child.send(asked);
    const [lines] = (await response) as [readonly number[]];
    return lines;
  }

  [Symbol.dispose](): void {
    this.#child.disconnect();
  }
}
