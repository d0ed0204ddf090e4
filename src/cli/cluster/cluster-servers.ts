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
  /**
   * The registry served under /metrics. The servers and their certificate register metrics here, so
   * use one registry per node.
   */
  readonly metrics: MetricRegistry;
  readonly loaded: Pick<LoadedConfig, 'config' | 'gates' | 'flags'>;
  readonly rootDir: string;
  readonly certDirectory: string;
  readonly nodeName: string;
  /**
   * Returns the current names and IP addresses for the serving certificate; may be empty at first.
   */
  readonly nodeAddresses: () => readonly string[];
  /** How long the addresses must be unchanged before a certificate is requested. */
  readonly addressesDebounceMs?: number | undefined;
  /**
   * The client for token and access reviews and for the serving certificate; undefined on a node
   * without a cluster.
   */
  readonly api: ApiClient | undefined;
  readonly kubelet: ServedKubelet;
  readonly cri: CriClient;
  /** Sets the log verbosity, for /debug/flags/v. */
  readonly verbosity: Pick<Verbosity, 'setLevel'>;
  /** The directory with the logs of the host's services; /var/log by default. */
  readonly hostLogs?: string | undefined;
  /**
   * The usage statistics of the node and its pods; the stats endpoints are not served when
   * undefined.
   */
  readonly stats?: StatsView | undefined;
  /** Health checks of /livez in addition to those of the kubelet. */
  readonly vitalChecks?: readonly HealthCheck[] | undefined;
  /** Health checks of /readyz in addition to those of the kubelet. */
  readonly readyChecks?: readonly HealthCheck[] | undefined;
  /** Returns all images of the node; the endpoint is not served when undefined. */
  readonly images?: (() => readonly ContainerImage[]) | undefined;
}

/** The servers of the kubelet API that are reachable over the network. */
export interface ClusterServers extends AsyncDisposable {
  /** The port of the TLS server; undefined when the configuration disables it. */
  readonly port: number | undefined;
  readonly readOnlyPort: number | undefined;
  /** Returns why the kubelet API is unreachable, or soon will be; undefined when it is healthy. */
  problem(): string | undefined;
  /** Notifies the servers that names or addresses of the node may have changed. Never blocks. */
  addressesChanged(): void;
  /** Resolves when the serving certificate exists, so that clients can connect. */
  certified(signal: AbortSignal): Promise<void>;
  /** Rotates the serving certificate; resolves when aborted. */
  run(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the servers of the configuration. Rejects, with nothing left open, when a certificate or CA
 * bundle cannot be read, when no client could be authenticated or authorized, or when an address is
 * in use.
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
  logger.info('Serving kubelet API', { address: config.address, port, readOnlyPort });
  const moved = opened.move();
  return {
    port,
    readOnlyPort,
    problem: () => certificate.problem(),
    addressesChanged: () => certificate.refresh(),
    certified: (signal) => untilCertified(certificate, signal),
    run: (signal) => endsWith(signal, certificate.run(signal)),
    close: () => moved.disposeAsync(),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

/**
 * Opens only the read-only server, which needs no authentication: for `enableServer: false`, or if
 * clients could not be authenticated.
 */
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
  if (unavailable.length > 0) logger.warn('Cipher suites are not supported by this Node.js', { unavailable });
  return profile;
}

async function untilCertified(certificate: ServedCertificate, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _subscription = certificate.onRotated(() => resolve());
  if (certificate.current() === undefined) await abortable(promise, signal);
}

/**
 * Resolves when the work ends because of the abort; rejects when the work ends for another reason.
 */
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
  /** The verb that exec, attach and port-forward require; `create` by default. */
  readonly streams?: 'create' | 'by-method' | undefined;
  /** The client for token and access reviews; undefined without an API server. */
  readonly api: Pick<ApiClient, 'create'> | undefined;
  readonly clientCa: ClientCa | undefined;
}

/**
 * Creates the gate that authenticates and authorizes clients, as configured. Throws AUTH_CONFIG for
 * a configuration under which no client could be authenticated or authorized.
 */
function clusterGate({ config, nodeName, api, streams, ...deps }: ClusterGateOptions): Gate {
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
  /** Returns the current names and IP addresses of the node. */
  readonly nodeAddresses: () => readonly string[];
  /** How long the addresses must be unchanged before a certificate is requested. */
  readonly addressesDebounceMs?: number | undefined;
  /** The client for certificate requests; undefined without an API server. */
  readonly api: ApiClient | undefined;
}

/**
 * Opens the serving certificate from its configured source, and exports its time to live as a
 * metric.
 */
async function openServingIdentity(options: ServingIdentityOptions): Promise<ServingIdentity> {
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
    { source, nodeName, certDirectory, addresses, debounceMs: options.addressesDebounceMs },
    { files: realCertificateFiles(), clock, random, log, observer: serverCertificateMetrics(metrics) },
  );
  log.info('Loaded serving certificate', { source: source.kind, how: certificate.describe() });
  const exposed = exposeTimeToLive(metrics, 'server', { clock, held: () => certificate.held() });
  return { certificate, [Symbol.dispose]: () => exposed[Symbol.dispose]() };
}

export interface ServingIdentity extends Disposable {
  readonly certificate: ServedCertificate;
}

function typed(address: string): NodeAddress {
  return { type: isIP(address) === 0 ? 'Hostname' : 'InternalIP', address };
}
