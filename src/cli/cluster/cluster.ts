import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type ApiClients, type ApiConnections, callMetrics, createApiClients } from '../../api/index.ts';
import { evictionThresholds, type LoadedConfig } from '../../config/index.ts';
import type { CriClient } from '../../cri/index.ts';
import { ClusterNode } from '../../kubelet/cluster/index.ts';
import type { BackgroundLoops, KubeletEndpoints, KubeletSettings } from '../../kubelet/index.ts';
import type { Clock, Logger, MetricRegistry, Random } from '../../lib/index.ts';
import {
  diskBytes,
  goArchitecture,
  hostNodeMachine,
  type MachineCapacity,
  type NodeSettings,
} from '../../node/index.ts';
import { type ClusterCopies, clusterCopies } from '../../objects/index.ts';
import { cpuCount, declaredFeatures } from '../../resources/index.ts';
import { realRuntimeFiles } from '../../runtime/index.ts';
import type { HealthCheck } from '../../server/index.ts';
import type { LiveConfig } from '../service/config-reload.ts';
import { kubernetesVersion } from '../version.ts';
import { type ClientAccess, openClientAccess } from './client-access.ts';
import { type ClusterServers, type ClusterServersOptions, openClusterServers } from './cluster-servers.ts';

export interface ClusterDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  /** Name and version that the runtime reports. */
  readonly runtime: { readonly name: string; readonly version: string };
  /** Notifies about configuration fields that may change while the node runs. */
  readonly live?: LiveConfig | undefined;
}

/** The connection of a node to its cluster, as configured by the kubeconfig of the flags. */
export interface Cluster extends AsyncDisposable {
  readonly node: ClusterNode;
  /** Health checks of the connection to the cluster. */
  readonly readyChecks: readonly HealthCheck[];
  /** Opens the servers of the kubelet API. */
  serve(options: ServeOptions): Promise<ClusterServers>;
}

type ServeOptions = Omit<
  ClusterServersOptions,
  'rootDir' | 'certDirectory' | 'nodeName' | 'nodeAddresses' | 'api' | 'kubelet' | 'stats' | 'images'
> & { readonly kubelet: KubeletEndpoints };

/** At shutdown, how long queued events may take to be sent. */
const lastWordsMs = 1_000;

/**
 * Opens the connection to the cluster. Sends no request before the kubelet runs, except to
 * bootstrap a certificate that is not rotated.
 */
export async function openCluster(
  loaded: LoadedConfig,
  settings: KubeletSettings,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<Cluster> {
  const { config, flags } = loaded;
  const { access, clients } = await openClients(loaded, settings.nodeName, deps, signal);
  // The root directory must exist for its file system size to be read.
  await mkdir(flags.rootDir, { recursive: true, mode: 0o750 });
  const disk = new DiskSize(flags.rootDir, deps.clock);
  await disk.refresh();
  let { port } = config;
  const node = new ClusterNode({
    ...deps,
    clients: { ...clients, closeSilent: closeUnresponsive(clients, process.env) },
    extraLoops: certificateLoops(access),
    ...(flags.keepApiPods ? { copies: copiesIn(flags.rootDir, deps.logger) } : {}),
    machine: hostNodeMachine(),
    node: nodeSettings(loaded, settings, () => port),
    changeDetection: config.configMapAndSecretChangeDetectionStrategy,
    syncFrequencyMs: config.syncFrequencyMs,
    capacity: () => nodeCapacity(settings, disk),
  });
  return {
    node,
    readyChecks: certificateChecks(access),
    async serve(options) {
      const servers = await openClusterServers({
        ...options,
        rootDir: flags.rootDir,
        certDirectory: flags.certDir,
        nodeName: settings.nodeName,
        nodeAddresses: certifiedAddresses(loaded, settings.nodeName, node, options.kubelet),
        api: clients.main,
        images: () => options.kubelet.images(),
        stats: await options.kubelet.statistics.pages(),
      });
      port = servers.port ?? port;
      node.onNodeChange(() => servers.addressesChanged());
      return servers;
    },
    async [Symbol.asyncDispose]() {
      await node.end(lastWordsMs);
      clients.close();
      access[Symbol.dispose]();
    },
  };
}

/** Opens the clients of the API server with the credentials of the node, which may be rotated. */
async function openClients(
  loaded: LoadedConfig,
  nodeName: string,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<{ readonly access: ClientAccess; readonly clients: ApiClients }> {
  const { config } = loaded;
  const connection = {
    clock: deps.clock,
    logger: deps.logger,
    userAgent: `kubeling/${kubernetesVersion} (linux/${goArchitecture(process.arch)})`,
    environment: process.env,
  };
  const access = await openClientAccess({ ...connection, ...deps, loaded, nodeName }, signal);
  const clients = createApiClients({
    ...connection,
    kubeconfig: access.kubeconfig,
    onCall: callMetrics(deps.metrics),
    ...ratesOf(config),
    heartbeatMs: Math.min(config.nodeStatusUpdateFrequencyMs, config.nodeLeaseDurationSeconds * 1_000),
  });
  deps.live?.onChange(['kubeAPIQPS', 'kubeAPIBurst', 'eventRecordQPS', 'eventBurst'], (changed) =>
    clients.setRates(ratesOf(changed)),
  );
  access.stored?.use(clients.main);
  access.stored?.certificate.onRotated(() => clients.reload());
  return { access, clients };
}

/** The names and addresses of the serving certificate. */
function certifiedAddresses(
  { config, flags }: LoadedConfig,
  nodeName: string,
  node: ClusterNode,
  kubelet: KubeletEndpoints,
): () => readonly string[] {
  const names = [...new Set([nodeName, flags.hostnameOverride || hostname()])];
  // The signer checks the status of the Node object, so a certificate cannot be requested before
  // the first status update.
  return () => [...names, ...(config.serverTLSBootstrap ? node.link.nodeIps() : kubelet.nodeIps())];
}

function nodeCapacity({ capacity, node }: KubeletSettings, disk: DiskSize): MachineCapacity {
  return {
    milliCpu: capacity.milliCpu,
    memory: capacity.memoryBytes,
    ephemeralStorage: disk.bytes(),
    hugePages: capacity.hugePages ?? new Map(),
    swap: Number(node.swapCapacity),
  };
}

/**
 * Returns the function that closes connections when heartbeats fail. With DISABLE_HTTP2 it closes
 * all connections, like the Go kubelet; otherwise connections that are in use and responsive stay
 * open.
 */
export function closeUnresponsive(
  connections: Pick<ApiConnections, 'closeSilent' | 'closeConnections'>,
  { DISABLE_HTTP2: isDisabled = '' }: Readonly<Record<string, string | undefined>>,
): () => void {
  return isDisabled === '' ? () => connections.closeSilent() : () => connections.closeConnections();
}

function copiesIn(rootDir: string, logger: Logger): ClusterCopies {
  return clusterCopies({ files: realRuntimeFiles(), rootDir, logger });
}

function ratesOf(config: LoadedConfig['config']) {
  return {
    main: { qps: config.kubeAPIQPS, burst: config.kubeAPIBurst },
    events: { qps: config.eventRecordQPS, burst: config.eventBurst },
  };
}

const diskSizeForMs = 60_000;

/** The size of the file system that pods write to, which may be resized at run time. */
class DiskSize {
  readonly #path: string;
  readonly #clock: Clock;
  #bytes: number | undefined;
  #measuredMs = Number.NEGATIVE_INFINITY;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /**
   * Returns the last known size of the file system, and starts to read the current size for the
   * next call.
   */
  bytes(): number | undefined {
    if (this.#clock.monotonicMs() - this.#measuredMs >= diskSizeForMs) void this.refresh();
    return this.#bytes;
  }

  async refresh(): Promise<void> {
    this.#measuredMs = this.#clock.monotonicMs();
    this.#bytes = (await diskBytes(this.#path)) ?? this.#bytes;
  }
}

function certificateChecks({ stored }: ClientAccess): readonly HealthCheck[] {
  if (stored === undefined) return [];
  return [{ name: 'client-certificate', problem: () => stored.certificate.problem() }];
}

function certificateLoops({ stored }: ClientAccess): BackgroundLoops {
  if (stored === undefined) return { restartable: {}, critical: {} };
  const { certificate, guard } = stored;
  return { restartable: { 'client certificate': certificate }, critical: { credentials: { run: guard } } };
}

function nodeSettings(
  { config, flags }: LoadedConfig,
  { nodeName, maxPods, isGateEnabled }: KubeletSettings,
  kubeletPort: () => number,
): NodeSettings {
  const hard = evictionThresholds(config).filter(({ kind }) => kind === 'hard');
  const below = (signal: string) => hard.find((threshold) => threshold.signal === signal)?.value;
  return {
    name: nodeName,
    hostname: flags.hostnameOverride || hostname(),
    register: config.registerNode ? 'self' : 'never',
    recreation: flags.afterNodeDeletion,
    labels: flags.nodeLabels,
    taints: config.registerWithTaints,
    providerId: config.providerID,
    cloudProvider: flags.cloudProvider,
    ips: flags.nodeIps,
    attachDetach: config.enableControllerAttachDetach ? 'controller' : 'kubelet',
    kubeletPort,
    kubeletVersion: kubernetesVersion,
    architecture: goArchitecture(process.arch),
    maxPods,
    reserved: [config.systemReserved, config.kubeReserved],
    reservedCpus: cpuCount(config.reservedSystemCPUs),
    hardEviction: { memory: below('memory.available'), nodefs: below('nodefs.available') },
    localStorage: config.localStorageCapacityIsolation ? 'counted' : 'not-counted',
    updateFrequencyMs: config.nodeStatusUpdateFrequencyMs,
    reportFrequencyMs: config.nodeStatusReportFrequencyMs,
    leaseDurationSeconds: config.nodeLeaseDurationSeconds,
    maxImages: config.nodeStatusMaxImages,
    declaredFeatures: declaredFeatures(isGateEnabled) ?? [],
  };
}
