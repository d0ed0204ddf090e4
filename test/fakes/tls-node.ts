import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import {
  type Clock,
  collectLogs,
  instant,
  KubelingError,
  MetricRegistry,
  realClock,
  seededRandom,
  Verbosity,
} from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import {
  containerLogsRoute,
  healthRoutes,
  kubeletRoutes,
  type Route,
  statsRoutes,
  streamRoutes,
  type UpgradeRoute,
  upgradeDialer,
} from '../../src/server/index.ts';
import {
  type AccessReviewSpec,
  ClientCaFile,
  caFile,
  checkpointRoute,
  configzRoute,
  createGate,
  createLogTree,
  debugFlagsRoute,
  flagzRoute,
  type GateSettings,
  HealthSlis,
  HttpMetricFamilies,
  imagesRoute,
  NodeServers,
  type ServingCertificate,
  statuszRoute,
  systemLogsRoute,
  tlsProfile,
} from '../../src/server/remote/index.ts';
import { type Authority, CertificateFolder, type KeyPair } from './certificate-authority.ts';

/**
 * The HTTPS server of a node with real authentication and authorization; the handlers behind them
 * only record their calls.
 */
export class TlsNode implements AsyncDisposable {
  readonly folder = new CertificateFolder();
  readonly authority: Authority;
  readonly logs = collectLogs(realClock());
  readonly registry = new MetricRegistry({ onError: () => {} });
  readonly verbosity = new Verbosity(0);
  /** The handlers that were called, in order. */
  readonly reached: string[] = [];
  readonly asked: AccessReviewSpec[] = [];
  readonly tokensAsked: string[] = [];
  reviews: 'up' | 'down' = 'up';
  /** The offset added to the clock when certificates are checked. */
  laterMs = 0;
  /** The streaming target of the runtime; no server listens there unless a test starts one. */
  runtimePort = 1;
  #serving: ServingCertificate;
  readonly #servingListeners = new Set<() => void>();
  #servers: NodeServers | undefined;
  #clientCa: ClientCaFile | undefined;

  static async open(change: Partial<GateSettings> = {}, debugging: 'on' | 'off' = 'on'): Promise<TlsNode> {
    const node = new TlsNode();
    try {
      await node.#open(change, debugging);
      return node;
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor() {
    this.authority = this.folder.authority('/CN=ca');
    this.#serving = this.servingPair();
    writeFileSync(this.caPath, this.authority.pem);
  }

  get caPath(): string {
    return join(this.folder.directory, 'client-ca.pem');
  }

  get port(): number {
    return this.#servers?.port ?? 0;
  }

  get readOnlyPort(): number {
    return this.#servers?.readOnlyPort ?? 0;
  }

  servingPair(): KeyPair {
    return this.authority.issue({ subject: '/CN=node', use: 'serverAuth', san: 'IP:127.0.0.1' });
  }

  serveWith(pair: ServingCertificate): void {
    this.#serving = pair;
    for (const listener of this.#servingListeners) listener();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers?.close();
    this.#clientCa?.[Symbol.dispose]();
    this.folder[Symbol.dispose]();
  }

  async #open(change: Partial<GateSettings>, debugging: 'on' | 'off'): Promise<void> {
    const { logger } = this.logs;
    const clock = realClock();
    const certificateClock: Clock = { ...clock, now: () => instant(clock.now() + this.laterMs) };
    this.#clientCa = await ClientCaFile.open({ file: caFile(this.caPath), clock, logger });
    const settings: GateSettings = {
      anonymous: 'refused',
      tokenWebhook: { kind: 'on', cacheMs: 0 },
      authorization: { mode: 'Webhook', allowedMs: 0, deniedMs: 0 },
      nodeName: 'n1',
      ...change,
    };
    const gate = createGate(settings, {
      clock: certificateClock,
      random: seededRandom(1),
      logger,
      clientCa: this.#clientCa,
      reviews: this.#reviews(),
      retry: { baseMs: 1, maxMs: 1 },
    });
    const certificates = {
      current: () => this.#serving,
      onChange: (listener: () => void) => {
        this.#servingListeners.add(listener);
        return { [Symbol.dispose]: () => void this.#servingListeners.delete(listener) };
      },
    };
    const { routes, upgrades } = this.#behind(clock);
    this.#servers = await NodeServers.open({
      address: '127.0.0.1',
      port: 0,
      readOnlyPort: 0,
      routes,
      upgrades,
      debugging,
      gate,
      tls: {
        certificates,
        clientCa: this.#clientCa,
        profile: tlsProfile({ minVersion: '', cipherSuites: [], curves: [] }),
      },
      metrics: new HttpMetricFamilies(this.registry, clock),
      logger,
    });
  }

  #reviews() {
    const down = () => new KubelingError('API_UNAVAILABLE', 'Cannot reach the API server');
    return {
      tokenReview: async (token: string) => {
        this.tokensAsked.push(token);
        if (this.reviews === 'down') throw down();
        const known = /^token-of-(\w+)$/.exec(token)?.[1];
        return known === undefined
          ? { authenticated: false, error: 'unknown token' }
          : { authenticated: true, user: { name: known, uid: 'u', groups: ['readers'] } };
      },
      subjectAccessReview: async (spec: AccessReviewSpec) => {
        this.asked.push(spec);
        if (this.reviews === 'down') throw down();
        return { allowed: spec.user.name === 'alice' };
      },
    };
  }

  #behind(clock: Clock): { routes: readonly Route[]; upgrades: readonly UpgradeRoute[] } {
    const reach = <T>(what: string, value: T): T => {
      this.reached.push(what);
      return value;
    };
    const getPodByName = (namespace: string, name: string) =>
      reach('pod', namespace === 'default' && name === 'web' ? pod : undefined);
    const streams = streamRoutes(
      {
        getPodByName,
        translatePodUid: (uid) => uid,
        exec: async () => reach('exec', `http://127.0.0.1:${this.runtimePort}/once`),
        attach: async () => reach('attach', `http://127.0.0.1:${this.runtimePort}/once`),
        portForward: async () => reach('portForward', `http://127.0.0.1:${this.runtimePort}/once`),
        run: async () => reach('run', Buffer.from('ran')),
      },
      { clock, dial: upgradeDialer(clock), idleMs: 0 },
    );
    const slis = new HealthSlis(() => {});
    const check = { name: 'ping', problem: () => reach('health', undefined) };
    const varLog = join(this.folder.directory, 'log');
    mkdirSync(varLog, { recursive: true });
    writeFileSync(join(varLog, 'sys.log'), 'hello\n');
    symlinkSync(this.caPath, join(varLog, 'escape'));
    const tree = createLogTree(varLog);
    const routes = [
      ...healthRoutes(slis.observed([check], 'healthz')),
      ...kubeletRoutes(
        {
          pods: async () => reach('pods', [pod]),
          runningPods: async () => reach('runningpods', []),
          flights: () => reach('flights', []),
        },
        this.registry,
        { probes: new MetricRegistry({ onError() {} }) },
      ),
      imagesRoute(() => reach('images', [])),
      slis.route,
      ...statsRoutes({
        summary: async () => reach('stats', {}),
        resourceMetrics: async () => reach('resource-metrics', ''),
        cadvisorMetrics: async () => reach('cadvisor-metrics', ''),
      }),
      statuszRoute({
        clock,
        startMs: clock.now(),
        version: '1.36.4',
        platform: 'none',
        paths: () => reach('statusz', []),
      }),
      flagzRoute(() => reach('flagz', {})),
      configzRoute(() => reach('configz', { kind: 'KubeletConfiguration' })),
      debugFlagsRoute({ setLevel: (level) => reach('flags', this.verbosity.setLevel(level)) }),
      systemLogsRoute({
        clock,
        tree: { inspect: (path) => reach('logs', tree.inspect(path)) },
        journal: { units: async () => reach('journal', new Set<string>()), read: async function* () {} },
      }),
      checkpointRoute({ getPodByName, checkpoint: async () => reach('checkpoint', '/checkpoint.tar') }),
      containerLogsRoute({
        clock,
        pods: () => reach('container-logs', [pod]),
        open: async () => ({ kind: 'refused', message: 'no log' }) as never,
        parseTime: () => undefined,
        splitStreams: 'off',
      }),
      ...streams.routes,
    ];
    return { routes, upgrades: streams.upgrades };
  }
}

const pod: Pod = {
  metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
  spec: { containers: [{ name: 'main' }] } as Pod['spec'],
  status: {},
};

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Sends one request, over a separate connection unless an agent is given. */
export function call(
  node: { readonly port: number | undefined },
  path: string,
  options: RequestOptions & { body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const request = httpsRequest({
      host: '127.0.0.1',
      port: node.port,
      path,
      agent: false,
      rejectUnauthorized: false,
      ...rest,
    });
    request.on('error', reject);
    request.on('upgrade', (response, socket: Duplex) => {
      socket.destroy();
      resolve({ status: response.statusCode ?? 0, body: '', headers: response.headers });
    });
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers }),
      );
    });
    request.end(body);
  });
}
