import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type ApiClientOptions,
  createApiClient,
  hostApiFiles,
  loadKubeconfig,
  mainLimits,
} from '../../src/api/index.ts';
import { type Clock, collectLogs, realClock, type Timer } from '../../src/lib/index.ts';
import { eventually } from '../kubeling-node.ts';

const run = promisify(execFile);

/** A certificate and its key, as files and as text. */
export interface Issued {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

export interface IssueOptions {
  readonly subject: string;
  /** The subject alternative names in openssl's format, such as `IP:127.0.0.1,DNS:localhost`. */
  readonly names?: string;
  /** The end of the validity in the format of `openssl ca`: YYYYMMDDHHMMSSZ. */
  readonly until?: string;
}

/**
 * A certificate authority for one test, created with openssl in a directory that is removed
 * afterwards.
 */
export class Authority implements AsyncDisposable {
  readonly directory: string;
  readonly caFile: string;
  #serial = 0;

  private constructor(directory: string) {
    this.directory = directory;
    this.caFile = join(directory, 'ca.crt');
  }

  static async create(): Promise<Authority> {
    const authority = new Authority(await mkdtemp(join(tmpdir(), 'kubeling-api-')));
    const { directory, caFile } = authority;
    const key = join(directory, 'ca.key');
    const subject = ['-subj', '/CN=test-ca', '-days', '10'];
    await openssl(['req', '-x509', ...newKey(key), '-out', caFile, ...subject]);
    return authority;
  }

  async issue({ subject, names, until = '20991231000000Z' }: IssueOptions): Promise<Issued> {
    const base = join(this.directory, `issued-${++this.#serial}`);
    const [certFile, keyFile, request, extensions] = ['crt', 'key', 'csr', 'ext'].map(
      (end) => `${base}.${end}`,
    ) as [string, string, string, string];
    await openssl(['req', ...newKey(keyFile), '-out', request, '-subj', subject]);
    await writeFile(extensions, names === undefined ? '' : `subjectAltName=${names}\n`);
    const signed = ['-in', request, '-out', certFile, '-extfile', extensions];
    const ca = ['-cert', this.caFile, '-keyfile', join(this.directory, 'ca.key')];
    const dates = ['-startdate', '20200101000000Z', '-enddate', until];
    await openssl(['ca', '-batch', '-notext', '-config', await this.#config(), ...ca, ...dates, ...signed]);
    return {
      certFile,
      keyFile,
      cert: await readFile(certFile, 'utf8'),
      key: await readFile(keyFile, 'utf8'),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Only `openssl ca` can sign certificates with validity periods in the past. */
  async #config(): Promise<string> {
    const path = join(this.directory, `ca-${this.#serial}.cnf`);
    const database = join(this.directory, `index-${this.#serial}.txt`);
    await writeFile(database, '');
    const lines = [
      '[ca]',
      'default_ca=own',
      '[own]',
      `database=${database}`,
      `new_certs_dir=${this.directory}`,
      'rand_serial=yes',
      'default_md=sha256',
      'policy=any',
      'unique_subject=no',
      '[any]',
      'commonName=supplied',
      'organizationName=optional',
    ];
    await writeFile(path, lines.join('\n'));
    return path;
  }
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file];
}

async function openssl(args: readonly string[]): Promise<void> {
  await run('openssl', [...args]);
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface TestServerOptions extends ServerOptions {
  /** Whether the server offers HTTP/2 besides HTTP/1.1. */
  readonly http2?: 'offered';
}

/** An HTTPS server that counts its connections. Its responses can be changed while it runs. */
export class TestServer implements AsyncDisposable {
  readonly #server: Server | Http2SecureServer;
  readonly sessions = new Set<ServerHttp2Session>();
  readonly sockets = new Set<Socket>();
  connections = 0;
  handle: Handler;

  private constructor({ http2, ...options }: TestServerOptions, handle: Handler) {
    this.handle = handle;
    const answer: Handler = (request, response) => this.handle(request, response);
    this.#server =
      http2 === undefined
        ? createServer(options, answer)
        : // HTTP/2 requests and responses support everything these tests use of HTTP/1.1.
          createSecureServer({ ...options, allowHTTP1: true }, answer as never);
    this.#server.on('session', (session: ServerHttp2Session) => {
      this.sessions.add(session);
      session.on('error', () => {});
      session.on('close', () => this.sessions.delete(session));
    });
    this.#server.on('connection', (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.sockets.delete(socket));
    });
    this.#server.on('tlsClientError', () => {});
  }

  static async start(options: TestServerOptions, handle: Handler): Promise<TestServer> {
    const server = new TestServer(options, handle);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cutAll();
    await closed;
  }
}

export interface WrittenKubeconfig {
  readonly server: string;
  /** Fields of the kubeconfig's cluster entry besides the server. */
  readonly cluster?: Readonly<Record<string, unknown>>;
  readonly user?: Readonly<Record<string, unknown>>;
}

/** Writes a kubeconfig as JSON, which is valid YAML. */
export async function writeKubeconfig(
  path: string,
  { server, cluster, user }: WrittenKubeconfig,
): Promise<string> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user: user ?? {} }],
  };
  await writeFile(path, JSON.stringify(config, undefined, 1));
  return path;
}

export function clientFor(path: string, options: Partial<ApiClientOptions> = {}) {
  const clock = options.clock ?? realClock();
  const { logger, records } = collectLogs(clock);
  const client = createApiClient({
    kubeconfig: () => loadKubeconfig({ path, files: hostApiFiles }),
    clock,
    logger,
    userAgent: 'kubeling-test',
    environment: { PATH: process.env['PATH'] },
    limits: { rate: { kind: 'unlimited' }, ...mainLimits },
    ...options,
  });
  return Object.assign(client, { records, [Symbol.dispose]: () => client.close() });
}

export function respondJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

export function never(): AbortSignal {
  return new AbortController().signal;
}

/** Polls in real time until the condition holds or a time limit passes. */
export async function until(condition: () => boolean): Promise<void> {
  await eventually(String(condition), async () => condition() || undefined, 60_000);
}

/** Creates a real clock that counts its pending timers. */
export function countingClock(): { readonly clock: Clock; readonly waiting: () => number } {
  const real = realClock();
  const timers = new Set<Timer>();
  const clock: Clock = {
    ...real,
    timer: (ms, run) => {
      const inner = real.timer(ms, () => {
        timers.delete(timer);
        run();
      });
      const cancel = () => {
        timers.delete(timer);
        inner.cancel();
      };
      const timer: Timer = { cancel, [Symbol.dispose]: cancel };
      timers.add(timer);
      return timer;
    },
  };
  return { clock, waiting: () => timers.size };
}
