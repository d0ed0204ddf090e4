import { isIP } from 'node:net';
import type { ApiClient } from '../../api/index.ts';
import type { ServedCertificate } from '../../certificates/index.ts';
import {
  exposeTimeToLive,
  openServingCertificate,
  realCertificateFiles,
  serverCertificateMetrics,
  servingSource,
} from '../../certificates/index.ts';
import type { KubeletConfiguration, LoadedConfig } from '../../config/index.ts';
import type { CriClient } from '../../cri/index.ts';
import type { ContainerImage, NodeAddress } from '../../kinds/index.ts';
import {
  abortable,
  type Clock,
  type Logger,
  type MetricRegistry,
  type Random,
  untilAborted,
  type Verbosity,
} from '../../lib/index.ts';
import { type HealthCheck, Listener, type StatsView } from '../../server/index.ts';
import {
  apiReviews,
  type ClientCa,
  ClientCaFile,
  caFile,
  createGate,
  type Gate,
  type GateSettings,
  HttpMetricFamilies,
  NodeServers,
  readOnlyRoutes,
  servedWith,
  type TlsProfile,
  tlsProfile,
} from '../../server/remote/index.ts';
import type { ServedKubelet } from '../kubelet/node-routes.ts';
import { clusterRoutes } from './cluster-routes.ts';
import { exposeProcess } from './process-metrics.ts';

export interface ClusterServersOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What is served under /metrics; the servers and their certificate are counted here, so one for one registry. */
  readonly metrics: MetricRegistry;
  readonly loaded: Pick<LoadedConfig, 'config' | 'gates' | 'flags'>;
  readonly rootDir: string;
  readonly certDirectory: string;
  readonly nodeName: string;
  /** Names and IP addresses the serving certificate is to be for, as they are now; may be none yet. */
  readonly nodeAddresses: () => readonly string[];
  /** How long those must have stayed the same before a certificate is asked for; a while unless given. */
  readonly addressesSettleMs?: number | undefined;
  /** For reviews of tokens and rights and for the serving certificate; undefined on a node that stands alone. */
  readonly api: ApiClient | undefined;
  readonly kubelet: ServedKubelet;
  readonly cri: CriClient;
  /** Set by /debug/flags/v. */
  readonly verbosity: Pick<Verbosity, 'setLevel'>;
  /** Where the host's services write their logs; /var/log unless given. */
  readonly hostLogs?: string | undefined;
  /** What the node and its pods have used; not served unless given. */
  readonly stats?: StatsView | undefined;
  /** What else must hold for the process to be well, beside what the kubelet knows itself. */
  readonly vitalChecks?: readonly HealthCheck[] | undefined;
  /** What else must hold for the node to be of use. */
  readonly readyChecks?: readonly HealthCheck[] | undefined;
  /** All images of the node; not shown unless given. */
  readonly images?: (() => readonly ContainerImage[]) | undefined;
}

/** The servers others reach the node by. */
export interface ClusterServers extends AsyncDisposable {
  /** Of the one with TLS; undefined when the configuration has none. */
  readonly port: number | undefined;
  readonly readOnlyPort: number | undefined;
  /** Why others cannot reach the node, or soon will not; undefined while all is well. */
  problem(): string | undefined;
  /** Names or addresses of the node may have changed. Never waits. */
  addressesChanged(): void;
  /** Resolves once others can connect: there is a certificate. */
  certified(signal: AbortSignal): Promise<void>;
  /** Keeps the certificate in order until aborted; resolves then. */
  run(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens them as the configuration says; what cannot work rejects: a certificate or authorities that cannot be read, nobody
 * who could be known or judged, an address that is taken. Then nothing is left open.
 */
export async function openClusterServers(options: ClusterServersOptions): Promise<ClusterServers> {
  const { config } = options.loaded;
  return config.enableServer ? await openSecure(options) : await openReadOnly(options);
}

async function openSecure(options: ClusterServersOptions): Promise<ClusterServers> {
  const { clock, logger, metrics, loaded } = options;
  const { config } = loaded;
  await using opened = new AsyncDisposableStack();
  const clientCa = await openClientCa(config, options);
  if (clientCa !== undefined) opened.use(clientCa);
  opened.use(exposeProcess({ ...options, gates: loaded.gates }));
  const gate = clusterGate({ ...options, config, clientCa, streams: loaded.flags.streamAuthorization });
  const profile = profileOf(config, logger);
  const { certificate } = opened.use(await openServingIdentity({ ...options, config }));
  const servers = opened.use(
    await NodeServers.open({
      address: config.address,
      port: config.port,
      readOnlyPort: config.readOnlyPort === 0 ? undefined : config.readOnlyPort,
      ...clusterRoutes(options),
      debugging: config.enableDebuggingHandlers ? 'on' : 'off',
      gate,
      tls: { certificates: servedWith(certificate), clientCa, profile },
      metrics: new HttpMetricFamilies(metrics, clock),
      logger,
    }),
  );
  const { port, readOnlyPort } = servers;
  logger.info('Others reach the node', { address: config.address, port, readOnlyPort });
  const kept = opened.move();
  return {
    port,
    readOnlyPort,
    problem: () => certificate.problem(),
    addressesChanged: () => certificate.look(),
    certified: (signal) => untilCertified(certificate, signal),
    run: (signal) => endsWith(signal, certificate.run(signal)),
    close: () => kept.disposeAsync(),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Only what asks nobody, where it is wanted: with `enableServer` off, or where nobody could be known. */
export async function openReadOnly(options: ClusterServersOptions): Promise<ClusterServers> {
  const { clock, logger, metrics, loaded } = options;
  const { address: host, readOnlyPort: port } = loaded.config;
  const counted = new HttpMetricFamilies(metrics, clock).of('readonly');
  const routes = readOnlyRoutes(clusterRoutes(options).routes);
  const listener =
    port === 0 ? undefined : await Listener.open({ host, port, logger, metrics: counted, routes });
  const exposed = exposeProcess({ ...options, gates: loaded.gates });
  const close = async () => {
    exposed[Symbol.dispose]();
    await listener?.close();
  };
  return {
    port: undefined,
    readOnlyPort: listener?.port,
    problem: () => undefined,
    addressesChanged: () => {},
    certified: async () => {},
    run: (signal) => endsWith(signal, untilAborted(signal)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function openClientCa(
  { authentication }: KubeletConfiguration,
  { clock, logger }: ClusterServersOptions,
): Promise<ClientCaFile | undefined> {
  const path = authentication.x509.clientCAFile;
  return path === '' ? undefined : await ClientCaFile.open({ file: caFile(path), clock, logger });
}

function profileOf(config: KubeletConfiguration, logger: Logger): TlsProfile {
  const profile = tlsProfile({
    minVersion: config.tlsMinVersion,
    cipherSuites: config.tlsCipherSuites,
    curves: config.tlsCurvePreferences,
  });
  const { unavailable } = profile;
  if (unavailable.length > 0) logger.warn('Some cipher suites cannot be had here', { unavailable });
  return profile;
}

async function untilCertified(certificate: ServedCertificate, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _told = certificate.onRotated(() => resolve());
  if (certificate.current() === undefined) await abortable(promise, signal);
}

/** Told to end, it ends; anything else that ends it is a failure. */
async function endsWith(signal: AbortSignal, work: Promise<never>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

export interface ClusterGateOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: Pick<KubeletConfiguration, 'authentication' | 'authorization'>;
  readonly nodeName: string;
  /** Which right it takes to enter pods; always that to create something unless given. */
  readonly streams?: 'create' | 'by-method' | undefined;
  /** Undefined without an API server. */
  readonly api: Pick<ApiClient, 'create'> | undefined;
  readonly clientCa: ClientCa | undefined;
}

/** Who may pass, as the configuration says. Throws AUTH_CONFIG for one under which nobody could be known or judged. */
export function clusterGate({ config, nodeName, api, streams, ...deps }: ClusterGateOptions): Gate {
  const reviews = api === undefined ? undefined : apiReviews(api);
  const settings = gateSettings(config, nodeName);
  return createGate(
    { ...settings, streams: streams === 'by-method' ? streams : 'always-create' },
    { ...deps, reviews },
  );
}

function gateSettings(
  { authentication, authorization }: ClusterGateOptions['config'],
  nodeName: string,
): GateSettings {
  const { anonymous, webhook } = authentication;
  const { cacheAuthorizedTTLMs: allowedMs, cacheUnauthorizedTTLMs: deniedMs } = authorization.webhook;
  return {
    anonymous: anonymous.enabled ? 'allowed' : 'refused',
    tokenWebhook: webhook.enabled ? { kind: 'on', cacheMs: webhook.cacheTTLMs } : { kind: 'off' },
    authorization:
      authorization.mode === 'Webhook' ? { mode: 'Webhook', allowedMs, deniedMs } : { mode: 'AlwaysAllow' },
    nodeName,
  };
}

export interface ServingIdentityOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly config: Pick<KubeletConfiguration, 'serverTLSBootstrap' | 'tlsCertFile' | 'tlsPrivateKeyFile'>;
  readonly certDirectory: string;
  readonly nodeName: string;
  /** Names and IP addresses of the node, as they are now. */
  readonly nodeAddresses: () => readonly string[];
  /** How long those must have stayed the same before a certificate is asked for; a while unless given. */
  readonly addressesSettleMs?: number | undefined;
  /** Undefined without an API server. */
  readonly api: ApiClient | undefined;
}

/** The certificate of the server, from where the configuration says, with its time to live among the metrics. */
export async function openServingIdentity(options: ServingIdentityOptions): Promise<ServingIdentity> {
  const { clock, random, logger: log, metrics, config, api, nodeName, certDirectory } = options;
  const { serverTLSBootstrap, tlsCertFile, tlsPrivateKeyFile } = config;
  const source = servingSource({
    serverTLSBootstrap,
    tlsCertFile,
    tlsPrivateKeyFile,
    api,
    hostname: nodeName,
    keyKind: 'rsa-2048',
  });
  const addresses = () => options.nodeAddresses().map(typed);
  const certificate = await openServingCertificate(
    { source, nodeName, certDirectory, addresses, settleMs: options.addressesSettleMs },
    { files: realCertificateFiles(), clock, random, log, observer: serverCertificateMetrics(metrics) },
  );
  log.info('Others know the server by its certificate', { source: source.kind, how: certificate.describe() });
  const told = exposeTimeToLive(metrics, 'server', { clock, held: () => certificate.held() });
  return { certificate, [Symbol.dispose]: () => told[Symbol.dispose]() };
}

export interface ServingIdentity extends Disposable {
  readonly certificate: ServedCertificate;
}

function typed(address: string): NodeAddress {
  return { type: isIP(address) === 0 ? 'Hostname' : 'InternalIP', address };
}
