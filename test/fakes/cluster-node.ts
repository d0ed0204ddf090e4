import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient, ApiObject, Collection } from '../../src/api/index.ts';
import { type ClusterServers, openClusterServers } from '../../src/cli/cluster/cluster-servers.ts';
import type { ServedKubelet } from '../../src/cli/kubelet/node-routes.ts';
import { hostFiles, loadConfig } from '../../src/config/index.ts';
import type { CriClient } from '../../src/cri/index.ts';
import {
  type Clock,
  collectLogs,
  KubelingError,
  MetricRegistry,
  realClock,
  seededRandom,
  Verbosity,
} from '../../src/lib/index.ts';
import { LogFollowers } from '../../src/runtime/index.ts';
import { type Authority, CertificateFolder, type KeyPair } from './certificate-authority.ts';
import { aPod } from './pods.ts';
import { SigningApi } from './signing-api.ts';

const clock = realClock();

/** A clock whose waits are shorter by this factor, for tests of long waits. */
function hastened(times: number): Clock {
  return {
    now: () => clock.now(),
    stamp: () => clock.stamp(),
    monotonicMs: () => clock.monotonicMs() * times,
    sleep: (ms, signal) => clock.sleep(ms / times, signal),
    timer: (ms, run) => clock.timer(ms / times, run),
  };
}

/** Options for the servers of a cluster node. */
export interface ClusterNodeWish {
  /** Flags as on the command line. */
  readonly flags?: readonly string[];
  readonly readOnlyPort?: number;
  readonly api?: 'away' | 'none';
  /** The factor by which the node's waits are shorter than in real time. */
  readonly times?: number;
}

/** The servers of a cluster node, with a kubelet that has one pod, and a scripted API server. */
export class ClusterNode implements AsyncDisposable {
  readonly folder: CertificateFolder;
  readonly authority: Authority;
  readonly logs = collectLogs(clock);
  readonly metrics = new MetricRegistry({ onError: () => {} });
  readonly verbosity = new Verbosity(0);
  /** The token and access reviews sent to the API server, in order. */
  readonly asked: ApiObject[] = [];
  readonly signer = new SigningApi({ clock, policy: 'issue' });
  readonly frozen: string[] = [];
  addresses: readonly string[] = ['127.0.0.1', 'n1'];
  #api: 'up' | 'away' | 'none';
  #servers: ClusterServers | undefined;
  #running: Promise<void> | undefined;
  readonly #stop = new AbortController();

  static async open(options: ClusterNodeWish = {}): Promise<ClusterNode> {
    const node = new ClusterNode(options);
    try {
      await node.#open(options);
      return node;
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor({ api = 'up' }: { readonly api?: 'up' | 'away' | 'none' }) {
    this.#api = api;
    this.folder = new CertificateFolder();
    this.authority = this.folder.authority('/CN=ca');
    mkdirSync(this.at('log'));
    writeFileSync(this.at('log/sys.log'), 'hello\n');
    writeFileSync(this.at('client-ca.pem'), this.authority.pem);
  }

  get servers(): ClusterServers {
    if (this.#servers === undefined) throw new Error('the servers are not open');
    return this.#servers;
  }

  get port(): number | undefined {
    return this.servers.port;
  }

  at(name: string): string {
    return join(this.folder.directory, name);
  }

  /** Writes a serving certificate and key to the paths in the returned flags. */
  writeServingPair(): readonly string[] {
    const pair = this.authority.issue({ subject: '/CN=n1', use: 'serverAuth', san: 'IP:127.0.0.1' });
    this.write(pair);
    return this.pairFlags;
  }

  write({ cert, key }: KeyPair): void {
    writeFileSync(this.at('serving.key'), key);
    writeFileSync(this.at('serving.pem'), cert);
  }

  get pairFlags(): readonly string[] {
    return [`--tls-cert-file=${this.at('serving.pem')}`, `--tls-private-key-file=${this.at('serving.key')}`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new KubelingError('CANCELLED', 'The test is over'));
    await this.#running;
    await this.#servers?.close();
    this.folder[Symbol.dispose]();
  }

  async #open({ flags = [], readOnlyPort = 0, times = 1 }: ClusterNodeWish): Promise<void> {
    const argv = flags.map((flag) => flag.replaceAll('{dir}', this.folder.directory));
    if (argv.some((flag) => flag.startsWith('--tls-cert-file'))) this.writeServingPair();
    const loaded = await loadConfig(argv, { files: hostFiles(), cwd: '/' });
    this.#servers = await openClusterServers({
      clock: hastened(times),
      random: seededRandom(1),
      logger: this.logs.logger,
      metrics: this.metrics,
      loaded: {
        gates: loaded.gates,
        flags: loaded.flags,
        config: {
          ...loaded.config,
          address: '127.0.0.1',
          port: 0,
          readOnlyPort,
          podLogsDir: this.at('pods'),
        },
      },
      rootDir: this.at('root'),
      certDirectory: this.at('pki'),
      nodeName: 'n1',
      nodeAddresses: () => this.addresses,
      api: this.#api === 'none' ? undefined : this.#client(),
      kubelet: servedKubelet(),
      cri: this.#cri(),
      verbosity: this.verbosity,
      hostLogs: this.at('log'),
    });
    this.#running = this.#servers.run(this.#stop.signal);
  }

  #client(): ApiClient {
    const create = async (at: Collection, object: ApiObject, signal: AbortSignal) => {
      if (this.#api === 'away')
        throw new KubelingError('API_FORBIDDEN', 'The API server rejected the review');
      if (at.resource.kind === 'CertificateSigningRequest') {
        return await this.signer.create(at, object, signal);
      }
      this.asked.push(object);
      return { ...object, status: review(object as unknown as Review) };
    };
    const { signer } = this;
    return {
      create,
      get: signer.get.bind(signer),
      list: signer.list.bind(signer),
      watch: signer.watch.bind(signer),
    } as unknown as ApiClient;
  }

  #cri(): CriClient {
    const checkpointContainer = async ({
      containerId,
      location,
    }: {
      containerId: string;
      location: string;
    }) => {
      writeFileSync(location, 'frozen');
      this.frozen.push(containerId);
      return {};
    };
    return { checkpointContainer } as unknown as CriClient;
  }
}

interface Review {
  readonly kind: 'TokenReview' | 'SubjectAccessReview';
  readonly spec: { readonly token?: string; readonly user?: string };
}

/**
 * Responds to reviews: the token `token-of-NAME` authenticates NAME, and alice has all permissions.
 */
function review({ kind, spec }: Review): unknown {
  if (kind === 'SubjectAccessReview') return { allowed: spec.user === 'alice' };
  const username = /^token-of-(\w+)$/.exec(spec.token ?? '')?.[1];
  return username === undefined ? { authenticated: false } : { authenticated: true, user: { username } };
}

function servedKubelet(): ServedKubelet {
  const pod = aPod();
  const unreachable = async () => 'http://127.0.0.1:1/once';
  const { uid, name, namespace } = pod.metadata;
  const container = { id: 'c1', name: 'main', sandboxId: 's1', image: '', state: 'running', createdAtNs: 0n };
  return {
    logFollowers: new LogFollowers(),
    health: {
      live: [{ name: 'ping', problem: () => undefined }],
      ready: [{ name: 'runtime', problem: () => 'it is away' }],
    },
    running: {
      get: async () => [
        { uid, name, namespace, sandboxes: [], containers: [{ ...container, state: 'running' }] },
      ],
    },
    streams: {
      getPodByName: (...expected) => (expected.join('/') === 'default/web' ? pod : undefined),
      translatePodUid: (known) => known,
      exec: unreachable,
      attach: unreachable,
      portForward: unreachable,
      run: async () => Buffer.from('ran'),
    },
    flights: { all: () => [], find: () => [] },
    node: { story: () => ({}) },
    probes: { metrics: new MetricRegistry({ onError: () => {} }) },
    podsToReport: async () => [pod],
    podsWithStatus: () => [pod],
    sourceProblems: () => [],
    sourceProblemsOf: () => [],
  };
}
