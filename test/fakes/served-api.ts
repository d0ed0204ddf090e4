import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type CollectedLogs, collectLogs, realClock, systemRandom, Verbosity } from '../../src/lib/index.ts';
import { type Grant, type OpenLocalApi, openLocalApi } from '../../src/local-api/index.ts';
import {
  diskCredentialFiles,
  openServerCredentials,
  type ServerCredentials,
} from '../../src/local-api/security/index.ts';
import { keyPem, newEcKey } from '../../src/protocols/x509/index.ts';

/** The credentials of a client. */
export interface Credential {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Way {
  readonly method: string;
  readonly path: string;
  readonly upgrade?: 'websocket' | 'SPDY/3.1';
  readonly body?: object;
  /** The content type of the body; undefined for the default. */
  readonly type?: string;
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

export interface ServedApiOptions {
  readonly grants?: readonly Grant[];
}

const clock = realClock();

/**
 * A complete embedded API on loopback, for a node `n1`, with requests over real HTTPS. Its complete
 * log is recorded at the highest verbosity.
 */
export class ServedApi implements AsyncDisposable {
  readonly directory: string;
  readonly url: string;
  readonly logs: CollectedLogs;
  /**
   * The API's certificate authorities, opened a second time, to sign certificates that the API
   * would sign and others that it would not.
   */
  readonly authorities: ServerCredentials;
  readonly kubelet: RecordingKubelet;
  readonly #api: OpenLocalApi;
  readonly #agents: Agent[] = [];
  readonly #stop: AbortController;

  private constructor(
    parts: Pick<ServedApi, 'directory' | 'url' | 'logs' | 'authorities' | 'kubelet'>,
    api: OpenLocalApi,
  ) {
    ({ directory: this.directory, url: this.url, logs: this.logs } = parts);
    ({ authorities: this.authorities, kubelet: this.kubelet } = parts);
    this.#api = api;
    this.#stop = new AbortController();
    void api.run(this.#stop.signal).catch(() => {});
  }

  static async open({ grants = [] }: ServedApiOptions = {}): Promise<ServedApi> {
    const directory = await mkdtemp(join(tmpdir(), 'kubeling-served-'));
    const logs = collectLogs(clock, new Verbosity(10));
    const kubelet = new RecordingKubelet();
    const names = { nodeName: 'n1', hostnames: () => [], addresses: () => [] };
    const api = await openLocalApi(
      {
        directory: join(directory, 'api'),
        adminKubeconfig: join(directory, 'kubeconfig'),
        listen: { host: '127.0.0.1', port: 0 },
        ...names,
        kubeletAt: () => ({ host: '127.0.0.1', port: kubelet.port, identity: 'n1' }),
        grants,
        version: { kubernetes: 'v1.36.4', own: '0.0.0' },
        exposeMetrics: async () => 'up 1\n',
        clock,
        random: systemRandom(),
        logger: logs.logger,
      },
      new AbortController().signal,
    );
    const files = diskCredentialFiles();
    const pki = join(directory, 'api', 'pki');
    const log = collectLogs(clock).logger;
    const authorities = await openServerCredentials({ ...names, directory: pki, clock, files, log });
    await kubelet.listen(authorities);
    return new ServedApi({ directory, url: api.url, logs, authorities, kubelet }, api);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  pairOf(who: 'admin' | 'node' | 'serving'): Required<Pick<Credential, 'cert' | 'key'>> {
    const { certificatePem: cert, keyPem: key } = this.authorities.pairOf(who);
    return { cert, key };
  }

  /** Creates a client with these credentials and separate connections. */
  caller(shown: Credential = {}): (way: Way) => Promise<Answered> {
    const { cert, key, token, headers = {} } = shown;
    const pair = cert === undefined ? {} : { cert, key };
    const agent = new Agent({ keepAlive: true, maxSockets: 8, ca: this.authorities.authorityPem, ...pair });
    this.#agents.push(agent);
    const own = { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
    return (way) => this.#ask(way, agent, own);
  }

  #ask(
    { method, path, body, upgrade, type }: Way,
    agent: Agent,
    own: Readonly<Record<string, string>>,
  ): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const usual = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const bytes = body === undefined ? undefined : JSON.stringify(body);
      // The Content-Length header is set explicitly, because Node.js does not add it for methods
      // that usually have no body, such as DELETE.
      const size = bytes === undefined ? {} : { 'content-length': Buffer.byteLength(bytes) };
      const headers = { 'content-type': type ?? usual, ...size, ...upgradeHeaders(upgrade), ...own };
      const asking = request(`${this.url}${path}`, { method, agent, headers });
      const responded = (reply: IncomingMessage, text: string) =>
        resolve({ status: reply.statusCode ?? 0, text, headers: reply.headers });
      asking.on('response', (reply) => {
        let text = '';
        reply.on('data', (chunk) => {
          text += String(chunk);
          // An authorized watch responds with its first line or, if there is no event, with its
          // response head.
          if (path.includes('watch=')) asking.destroy();
        });
        reply.on('close', () => responded(reply, text));
        reply.on('error', () => {});
        if (path.includes('watch=') && reply.statusCode === 200) asking.destroy();
      });
      asking.on('upgrade', (reply, socket: Duplex, head) => {
        socket.on('error', () => {});
        socket.destroy();
        responded(reply, head.toString('latin1'));
      });
      asking.on('error', reject);
      asking.end(bytes);
    });
  }

  /** Opens a raw connection. */
  async connect(options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connect({
      host: '127.0.0.1',
      port: this.port,
      ca: this.authorities.authorityPem,
      ...options,
    });
    await once(socket, 'secureConnect');
    socket.on('error', () => {});
    return socket;
  }

  /** Sends the bytes and returns the complete response until the server closes the connection. */
  async raw(bytes: string | Buffer, options: ConnectionOptions = {}): Promise<string> {
    const socket = await this.connect(options);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    // A client that sends too much data may get a connection reset, which counts as a close.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(bytes);
    await closed;
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents) agent.destroy();
    this.#stop.abort(new Error('the test is over'));
    await this.#api[Symbol.asyncDispose]();
    await this.kubelet[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
  }
}

function upgradeHeaders(upgrade: Way['upgrade']): Readonly<Record<string, string>> {
  if (upgrade === undefined) return {};
  const common = { connection: 'Upgrade', upgrade };
  if (upgrade === 'SPDY/3.1') return { ...common, 'x-stream-protocol-version': 'v4.channel.k8s.io' };
  return {
    ...common,
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-protocol': 'v5.channel.k8s.io',
  };
}

/** The client certificates and requests that the server received. */
export interface Visit {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The common name of the client certificate; undefined unless it is trusted. */
  readonly by: string | undefined;
}

/**
 * A fake kubelet server: accepts every upgrade, responds to every other request, and records the
 * clients.
 */
export class RecordingKubelet implements AsyncDisposable {
  readonly visits: Visit[] = [];
  #server: ReturnType<typeof createServer> | undefined;

  get port(): number {
    return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
  }

  /**
   * Starts the server with a certificate signed by these authorities. May be called again with the
   * authorities of another API.
   */
  async listen({ authority, authorityPem: ca }: ServerCredentials): Promise<void> {
    await this[Symbol.asyncDispose]();
    const key = newEcKey();
    const nowMs = clock.now();
    const cert = authority.issue({
      identity: { commonName: 'system:node:n1', organizations: ['system:nodes'], dnsNames: ['n1'], ips: [] },
      key,
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3_600_000,
      uses: ['digital-signature'],
      extendedUses: ['server-auth'],
    });
    const tls = { cert, key: keyPem(key), ca, requestCert: true, rejectUnauthorized: false };
    const server = createServer(tls, (incoming, outgoing) => {
      this.#note(incoming);
      outgoing.end('from the kubelet');
    });
    server.on('upgrade', (incoming, socket) => {
      this.#note(incoming);
      socket.on('error', () => {});
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
    this.#server = server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }

  #note({ method, url, headers, socket }: IncomingMessage): void {
    const { authorized } = socket as TLSSocket;
    const subject = (socket as TLSSocket).getPeerX509Certificate()?.subject ?? '';
    const by = authorized ? /CN=(.*)/.exec(subject)?.[1] : undefined;
    this.visits.push({ method, url, headers, by });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}
