import type { ApiClient } from '../api/index.ts';
import type { KubeletConfiguration, LoadedConfig } from '../config/index.ts';
import type { CriClient } from '../cri/index.ts';
import {
  type Clock,
  type Logger,
  type MetricRegistry,
  type Random,
  untilAborted,
  type Verbosity,
} from '../lib/index.ts';
import { Listener } from '../server/index.ts';
import {
  ClientCaFile,
  caFile,
  HttpMetricFamilies,
  NodeServers,
  readOnlyRoutes,
  servedWith,
  type TlsProfile,
  tlsProfile,
} from '../server/remote/index.ts';
import { clusterGate } from './cluster-servers/cluster-gate.ts';
import { clusterRoutes } from './cluster-servers/cluster-routes.ts';
import { openServingIdentity } from './cluster-servers/serving-identity.ts';
import type { ServedKubelet } from './node-routes.ts';

export interface ClusterServersOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What is served under /metrics; the servers and their certificate are counted here, so one for one registry. */
  readonly metrics: MetricRegistry;
  readonly loaded: Pick<LoadedConfig, 'config' | 'gates'>;
  readonly rootDir: string;
  readonly certDirectory: string;
  readonly nodeName: string;
  /** Names and IP addresses the serving certificate is to be for, as they are now; may be none yet. */
  readonly nodeAddresses: () => readonly string[];
  /** For reviews of tokens and rights and for the serving certificate; undefined on a node that stands alone. */
  readonly api: ApiClient | undefined;
  readonly kubelet: ServedKubelet;
  readonly cri: CriClient;
  /** Set by /debug/flags/v. */
  readonly verbosity: Pick<Verbosity, 'setLevel'>;
  /** Where the host's services write their logs; /var/log unless given. */
  readonly hostLogs?: string | undefined;
}

/** The servers others reach the node by. */
export interface ClusterServers extends AsyncDisposable {
  /** Of the one with TLS; undefined when the configuration has none. */
  readonly port: number | undefined;
  readonly readOnlyPort: number | undefined;
  /** Names or addresses of the node may have changed. Never waits. */
  addressesChanged(): void;
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
  const gate = clusterGate({ ...options, config, clientCa });
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
    addressesChanged: () => certificate.look(),
    run: (signal) => endsWith(signal, certificate.run(signal)),
    close: () => kept.disposeAsync(),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** With `enableServer` off: only what asks nobody, where it is wanted. */
async function openReadOnly(options: ClusterServersOptions): Promise<ClusterServers> {
  const { clock, logger, metrics, loaded } = options;
  const { address: host, readOnlyPort: port } = loaded.config;
  const counted = new HttpMetricFamilies(metrics, clock).of('readonly');
  const routes = readOnlyRoutes(clusterRoutes(options).routes);
  const listener =
    port === 0 ? undefined : await Listener.open({ host, port, logger, metrics: counted, routes });
  const close = async () => await listener?.close();
  return {
    port: undefined,
    readOnlyPort: listener?.port,
    addressesChanged: () => {},
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

/** Told to end, it ends; anything else that ends it is a failure. */
async function endsWith(signal: AbortSignal, work: Promise<never>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
