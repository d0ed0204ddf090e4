import { Agent, type RequestOptions, request } from 'node:https';
import type { TlsOptions } from 'node:tls';
import { KindTable } from '../../src/kinds/index.ts';
import { type Clock, type CollectedLogs, collectLogs, realClock, seededRandom } from '../../src/lib/index.ts';
import { type ApiCall, StatusError } from '../../src/local-api/api/api-types.ts';
import type { ApiResponse, ServedWatchEvent } from '../../src/local-api/api/responses.ts';
import { type ApiBackend, ApiServer, type ApiServerDeps } from '../../src/local-api/http/index.ts';
import { createCatalogue } from '../../src/local-api/registry/catalogue.ts';
import { openServerCredentials, tlsOptions } from '../../src/local-api/security/index.ts';
import { MemoryCredentialFiles } from './memory-authority-files.ts';

/**
 * An API back end that never responds itself: it records the requests, and the test provides the
 * responses.
 */
export class ScriptedFrontApi implements ApiBackend {
  readonly calls: ApiCall[] = [];
  answer: (call: ApiCall, signal: AbortSignal) => ApiResponse | Promise<ApiResponse> = ({ body }) => ({
    kind: 'object',
    code: 200,
    object: { kind: 'Anything', metadata: {}, body },
  });
  lines: (call: ApiCall, signal: AbortSignal) => AsyncIterable<ServedWatchEvent> = async function* () {};

  get last(): ApiCall {
    const call = this.calls.at(-1);
    if (call === undefined) throw new Error('The API was never called');
    return call;
  }

  async handle(call: ApiCall, signal: AbortSignal): Promise<ApiResponse> {
    this.calls.push(call);
    return await this.answer(call, signal);
  }

  watch(call: ApiCall, signal: AbortSignal): AsyncIterable<ServedWatchEvent> {
    this.calls.push(call);
    return this.lines(call, signal);
  }
}

/** The valid tokens and their users. */
const users: Readonly<Record<string, { readonly name: string; readonly groups: readonly string[] }>> = {
  admin: { name: 'admin', groups: ['system:masters'] },
  nobody: { name: 'nobody', groups: ['system:authenticated'] },
};

export interface FrontRigOptions {
  readonly port?: number;
  readonly clock?: Clock;
  readonly deps?: Partial<ApiServerDeps>;
}

/** An HTTPS front end on loopback with a scripted API behind it, and a client for it. */
export class FrontRig implements AsyncDisposable {
  readonly api: ScriptedFrontApi;
  readonly logs: CollectedLogs;
  readonly front: ApiServer;
  readonly asked: unknown[] = [];
  readonly port: number;
  readonly #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });

  private constructor(made: Pick<FrontRig, 'api' | 'logs' | 'front' | 'port'>, asked: unknown[]) {
    this.api = made.api;
    this.logs = made.logs;
    this.front = made.front;
    this.port = made.port;
    this.asked = asked;
  }

  static async open({
    port: expected = 0,
    clock = realClock(),
    deps = {},
  }: FrontRigOptions = {}): Promise<FrontRig> {
    const api = new ScriptedFrontApi();
    const logs = collectLogs(clock);
    const requests: unknown[] = [];
    const front = new ApiServer({
      api,
      catalogue: createCatalogue({}),
      table: new KindTable(),
      security: {
        authenticate: ({ headers, certificate }) => {
          const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
          if (certificate !== undefined && certificate.untrusted !== undefined) throw unauthorized();
          if (certificate !== undefined) return { name: 'by-certificate', groups: ['system:masters'] };
          if (token === undefined) return { name: 'system:anonymous', groups: ['system:unauthenticated'] };
          const user = users[token];
          if (user === undefined) throw unauthorized();
          return user;
        },
        authorize: ({ groups }, attributes) => {
          requests.push(attributes);
          const isOpen = attributes.to === 'path' && attributes.path === '/healthz';
          return { allowed: groups.includes('system:masters') || isOpen };
        },
      },
      documents: { document: () => undefined },
      clock,
      random: seededRandom(1),
      logger: logs.logger,
      ...deps,
    });
    const { port } = await front.listen({ host: '127.0.0.1', port: expected, tls: await servingTls() });
    return new FrontRig({ api, logs, front, port }, requests);
  }

  async ask(path: string, options: AskOptions = {}): Promise<Asked> {
    const { body, token = 'admin', headers = {}, ...rest } = options;
    const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
    // The Content-Length header is sent because, for some methods, a server would parse a body
    // without this header as the next request.
    const size =
      body === undefined || 'transfer-encoding' in headers
        ? {}
        : { 'content-length': Buffer.byteLength(body) };
    const all = { ...authorization, ...size, ...headers };
    return await ask({ ...rest, port: this.port, path, headers: all, agent: this.#agent }, body);
  }

  /** Returns all errors in the log. */
  get complaints(): readonly string[] {
    return [...this.logs.records]
      .filter(({ severity }) => severity === 'error')
      .map(({ message }) => message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.front.close();
  }
}

function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** A bearer token; an empty string sends none. */
  readonly token?: string;
}

export interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export function ask(options: RequestOptions, body?: string | Uint8Array): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', rejectUnauthorized: false, ...options }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = response.headers['content-type']?.includes('json') === true && text !== '';
        const json = isJson && !text.includes('}\n{') ? JSON.parse(text) : {};
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

let created: Promise<TlsOptions> | undefined;

/**
 * Returns a serving certificate, created once for all tests of a file because key generation is
 * slow.
 */
export function servingTls(): Promise<TlsOptions> {
  created ??= openServerCredentials({
    directory: '/authorities',
    nodeName: 'node',
    hostnames: () => ['localhost'],
    addresses: () => [],
    clock: realClock(),
    files: new MemoryCredentialFiles(),
    log: collectLogs(realClock()).logger,
  }).then(tlsOptions);
  return created;
}
