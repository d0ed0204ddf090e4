import { readFile, stat, writeFile } from 'node:fs/promises';
import type { KubeletConfiguration } from '../../config/index.ts';
import {
  describeFinding,
  evictionTable,
  hostFiles,
  kubeletFlagHelp,
  type LoadedConfig,
  loadConfig,
  parseCommandLine,
  renderConfig,
} from '../../config/index.ts';
import { type CriClient, createCriClient, criMetrics, wireTransport } from '../../cri/index.ts';
import type { KubeletEndpoints, KubeletSettings } from '../../kubelet/index.ts';
import {
  type Clock,
  descriptorOutput,
  type Logger,
  MetricRegistry,
  openLog,
  Verbosity,
} from '../../lib/index.ts';
import { setupKernelTunables } from '../../resources/index.ts';
import type { HealthCheck } from '../../server/index.ts';
import type { Cluster, ClusterDeps } from '../cluster/cluster.ts';
import type { ClusterServers, ClusterServersOptions } from '../cluster/cluster-servers.ts';
import { type Command, type CommandContext, exitCodes } from '../command.ts';
import { applyRuntimeVersion, credentialPlugins, kubeletSettings } from '../kubelet/kubelet-settings.ts';
import { type Node, type NodeOptions, openNode } from '../kubelet/node-process.ts';
import { DelayedSigterm } from '../process-events.ts';
import { ConfigReload, type LiveConfig } from '../service/config-reload.ts';
import { runAsService, type Service } from '../service/run-as-service.ts';
import { kubernetesVersion, command as version } from '../version.ts';
import { prepareDirectories, reportOpenManifests } from './kubelet-directories.ts';

/** The log counts as blocked when it was not flushed for this long. */
const logBlockedMs = 2 * 60_000;

const usage = `usage: kubeling run [flags]

Runs kubeling as the kubelet of a node. Uses the configuration file, the drop-in directory and the flags of the Go kubelet.
Pods come from the manifest directory, the manifest URL, and with --kubeconfig from the API server.

${kubeletFlagHelp().trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { flags } = parseCommandLine(context.argv, process.cwd());
  if (flags.version === 'raw') {
    context.stdout.write(`${kubernetesVersion}\n`);
    return exitCodes.done;
  }
  if (flags.version !== '') return await version.run({ ...context, argv: [] });
  const loaded = await read(context, context.signal);
  // Checks the credential plugins before any change to the machine, and also when the configuration
  // is only validated.
  await credentialPlugins(loaded);
  if (flags.printConfig || flags.validateConfig) return show(loaded, context);
  return await serve(loaded, context);
}

function read({ argv }: CommandContext, signal: AbortSignal): Promise<LoadedConfig> {
  return loadConfig(argv, { files: hostFiles(), cwd: process.cwd() }, signal);
}

/**
 * Warns if the kubelet does not run as root: most operations require it, but the rest may be enough
 * for tests.
 */
function printReady(logger: Logger): void {
  const uid = process.getuid?.();
  if (uid !== 0)
    logger.error('Kubelet runs without root privileges, many operations will fail', undefined, { uid });
}

/**
 * Applies kernel settings. Only `run` does that: `up` on a laptop must not change kernel settings
 * of the whole machine.
 */
async function applySysctls({ config }: LoadedConfig, logger: Logger): Promise<void> {
  await setupKernelTunables({
    files: { read: (path) => readFile(path, 'utf8'), write: writeFile },
    logger,
    mismatch: config.protectKernelDefaults ? 'refuse' : 'set',
  });
}

function show(loaded: LoadedConfig, { stdout, stderr }: CommandContext): number {
  for (const warning of loaded.warnings) stderr.write(`warning: ${describeFinding(warning)}\n`);
  if (loaded.flags.printConfig) stdout.write(renderConfig(loaded));
  return exitCodes.done;
}

async function serve(loaded: LoadedConfig, context: CommandContext): Promise<number> {
  const { clock } = context;
  const { config } = loaded;
  const verbosity = verbosityOf(loaded);
  const { logger, sink } = openLog({
    clock,
    format: config.logging.format,
    output: descriptorOutput(2, clock),
    verbosity,
  });
  const vitalChecks = [logCheck(sink, clock)];
  const reload = new ConfigReload(loaded.config, { load: (signal) => read(context, signal), logger });
  reload.onChange(['logging.verbosity', 'logging.vmodule'], (changed) => {
    verbosity.setLevel(changed.logging.verbosity);
    verbosity.setModules(moduleLevels(changed));
  });
  using _hangups = context.onHangup?.(() => void reload.reload(context.signal));
  try {
    logConfig(loaded, logger);
    printReady(logger);
    await applySysctls(loaded, logger);
    await reportLooseModes(protectedFiles(loaded), logger);
    await runAsService({ loaded, context, logger, vitalChecks }, (service, signal) =>
      runNode(loaded, { ...context, signal }, { logger, verbosity, vitalChecks, service, live: reload }),
    );
    logger.info('Stopping kubelet, containers keep running');
    return exitCodes.done;
  } finally {
    sink.flushSync();
  }
}

interface NodeParts {
  readonly logger: Logger;
  readonly verbosity: Verbosity;
  readonly vitalChecks: readonly HealthCheck[];
  readonly service: Service;
  readonly live: LiveConfig;
}

async function runNode(loaded: LoadedConfig, context: CommandContext, parts: NodeParts): Promise<void> {
  const { clock, random, signal } = context;
  const { logger, live } = parts;
  const metrics = new MetricRegistry({ onError: (error) => logger.error('Failed to collect metric', error) });
  const cri = connect(loaded, metrics, context);
  try {
    const { runtimeName, runtimeVersion } = await cri.checkVersion(signal);
    logger.info('Connected to container runtime', { runtime: runtimeName, version: runtimeVersion });
    const deps = { cri, clock, random, logger, metrics };
    const settings = await prepareMachine(loaded, deps, signal);
    const runtime = { name: runtimeName, version: runtimeVersion };
    await using cluster = await join(loaded, settings, { ...deps, runtime, live }, signal);
    await runServers(loaded, { ...deps, runtimeName, settings, cluster }, parts, signal);
  } finally {
    cri.close();
  }
}

type NodeDeps = Omit<ClusterDeps, 'runtime' | 'live'>;

interface ServersOptions extends NodeDeps {
  readonly runtimeName: string;
  /** The settings of the kubelet without a cluster. */
  readonly settings: KubeletSettings;
  readonly cluster: Cluster | undefined;
}

/** Opens the kubelet and its servers, and runs them until aborted. */
async function runServers(
  loaded: LoadedConfig,
  { runtimeName, settings, cluster, ...deps }: ServersOptions,
  { verbosity, vitalChecks, service }: NodeParts,
  signal: AbortSignal,
): Promise<void> {
  const { config } = loaded;
  const isServed = cluster !== undefined || canServeWithoutApi(config);
  // The loopback server also reports problems of the TLS server, such as a missing certificate,
  // which clients of the TLS server could not read.
  const served: { problem?: () => string | undefined } = {};
  const readyChecks = [
    ...(cluster?.readyChecks ?? []),
    ...(isServed ? [{ name: 'serving-certificate', problem: () => served.problem?.() }] : []),
  ];
  const node = await openNode({
    ...deps,
    ...(cluster === undefined
      ? { settings }
      : { settings: { ...settings, apiPods: 'expected' }, cluster: cluster.node }),
    ...listenSettings(config, isServed ? 'served' : 'loopback-only'),
    runtimeName,
    workingDir: process.cwd(),
    vitalChecks,
    readyChecks,
  });
  const { kubelet } = node;
  const shown = { ...deps, loaded, kubelet: kubelet.endpoints, verbosity, vitalChecks, readyChecks };
  const isRead = isServed || config.readOnlyPort !== 0;
  await using servers = isRead
    ? await (cluster?.serve(shown) ?? serveWithoutApi({ ...shown, settings }))
    : undefined;
  if (servers !== undefined) served.problem = () => servers.problem();
  const port = servers?.port ?? node.port;
  deps.logger.info('Serving kubelet on loopback', { port, healthzPort: config.healthzPort });
  using podsFirst = delayedSigterm(loaded, kubelet.control, signal);
  const end = podsFirst?.signal ?? signal;
  await Promise.all([
    node.run(end),
    servers?.run(end),
    service.started(kubelet.endpoints.health),
    runFirewall(loaded, deps, end),
  ]);
}

/** Prepares the machine for the kubelet; returns the settings of a kubelet without a cluster. */
async function prepareMachine(
  loaded: LoadedConfig,
  deps: NodeDeps,
  signal: AbortSignal,
): Promise<KubeletSettings> {
  const { podLogsDir, staticPodPath } = loaded.config;
  const directories = { rootDir: loaded.flags.rootDir, podLogsDir };
  const events = await prepareDirectories(directories, deps.clock, signal);
  await reportOpenManifests(staticPodPath, deps.logger);
  const settings = await applyRuntimeVersion(await kubeletSettings(loaded), loaded, deps, signal);
  return { ...settings, startEvents: [...events, ...(settings.startEvents ?? [])] };
}

/**
 * Returns the settings of the loopback and health listeners. With a TLS server for remote clients,
 * which listens on the configured port, the loopback server uses any free port.
 */
function listenSettings(config: KubeletConfiguration, remote: 'served' | 'loopback-only') {
  const { port, readOnlyPort } = config;
  return {
    ...(remote === 'served'
      ? { port: 0, laterPorts: [port, readOnlyPort] }
      : { port, laterPorts: [readOnlyPort] }),
    healthzPort: config.healthzPort,
    healthzAddress: config.healthzBindAddress,
    whenPortInUse: 'fail',
    streamingIdleMs: config.streamingConnectionIdleTimeoutMs,
  } satisfies Partial<NodeOptions>;
}

/** Returns the signal that delays SIGTERM until the pods have stopped, if the flags ask for it. */
function delayedSigterm(
  { flags }: LoadedConfig,
  { shutdown }: Node['kubelet']['control'],
  signal: AbortSignal,
): DelayedSigterm | undefined {
  if (!flags.shutdownOnSigterm || shutdown === undefined) return undefined;
  return new DelayedSigterm(signal, (inner) => shutdown.terminatePods(inner));
}

/** Keeps the firewall rules of a cluster node in place until aborted. Never rejects. */
async function runFirewall(
  { config }: LoadedConfig,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  if (!config.makeIPTablesUtilChains) return;
  const { clusterLoopbackRules: rules, HostFirewall } = await import('../../node/index.ts');
  const { createPacketFilter } = await import('../data-directory/firewall.ts');
  const firewall = new HostFirewall({ filter: createPacketFilter(clock), rules, clock, logger });
  await firewall.run(signal).catch(() => {});
}

/**
 * Returns a health check that fails while the log is blocked: a reader of the log that has stopped
 * reading blocks the process.
 */
function logCheck(sink: { readonly lastFlushMs: number }, clock: Clock): HealthCheck {
  const isBlocked = () => clock.monotonicMs() - sink.lastFlushMs > logBlockedMs;
  return { name: 'log', problem: () => (isBlocked() ? 'logging blocked' : undefined) };
}

/**
 * Connects to the cluster; returns undefined without one, and does not load the cluster code then.
 */
async function join(
  loaded: LoadedConfig,
  settings: KubeletSettings,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  if (loaded.flags.kubeconfig === '') return undefined;
  const { openCluster } = await import('../cluster/cluster.ts');
  return await openCluster(loaded, settings, deps, signal);
}

function connect(
  { config }: LoadedConfig,
  metrics: MetricRegistry,
  { clock, random }: CommandContext,
): CriClient {
  const transport = wireTransport({
    endpoint: config.containerRuntimeEndpoint,
    ...(config.imageServiceEndpoint === '' ? {} : { imageEndpoint: config.imageServiceEndpoint }),
    clock,
    random,
  });
  const observer = criMetrics(metrics);
  return createCriClient({ transport, clock, observer, requestTimeoutMs: config.runtimeRequestTimeoutMs });
}

function verbosityOf({ config }: LoadedConfig): Verbosity {
  return new Verbosity(config.logging.verbosity, moduleLevels(config));
}

function moduleLevels({ logging }: LoadedConfig['config']) {
  return logging.vmodule.map(({ filePattern, verbosity }) => ({ pattern: filePattern, level: verbosity }));
}

/** Logs the configuration with which this kubelet runs. */
function logConfig(loaded: LoadedConfig, logger: Logger): void {
  for (const warning of loaded.warnings) logger.warn(describeFinding(warning));
  logger.info('Loaded configuration', { files: loaded.configFiles.join(' ') || 'none' });
  for (const row of evictionTable(loaded.config, loaded.origins)) {
    if (row.hard !== undefined || row.soft !== undefined) logger.info('Eviction threshold', { ...row });
  }
}

export const command: Command = {
  name: 'run',
  summary: 'run as the kubelet of a node, with the flags of the Go kubelet',
  usage,
  run,
};

/**
 * Whether the kubelet API can be served over the network without an API server: clients can be
 * authenticated by a client CA or anonymously, and authorization is AlwaysAllow. Otherwise only
 * loopback is served.
 */
function canServeWithoutApi({ authentication, authorization, enableServer }: KubeletConfiguration): boolean {
  const { anonymous, webhook, x509 } = authentication;
  const hasAuthentication = anonymous.enabled || x509.clientCAFile !== '';
  return enableServer && hasAuthentication && !webhook.enabled && authorization.mode === 'AlwaysAllow';
}

type ServeWithoutApiOptions = Omit<
  ClusterServersOptions,
  'rootDir' | 'certDirectory' | 'nodeName' | 'nodeAddresses' | 'api' | 'kubelet' | 'loaded' | 'stats'
> & { readonly loaded: LoadedConfig; readonly kubelet: KubeletEndpoints; readonly settings: KubeletSettings };

/**
 * Opens the servers of a node without a cluster, or only the read-only one if clients cannot be
 * authenticated. Loads their modules on demand.
 */
async function serveWithoutApi(options: ServeWithoutApiOptions): Promise<ClusterServers> {
  const { loaded, settings, kubelet } = options;
  const { rootDir, certDir: certDirectory } = loaded.flags;
  const { openClusterServers, openReadOnly } = await import('../cluster/cluster-servers.ts');
  const { nodeName } = settings;
  const open = canServeWithoutApi(loaded.config) ? openClusterServers : openReadOnly;
  return await open({
    ...options,
    rootDir,
    certDirectory,
    nodeName,
    nodeAddresses: () => [nodeName, ...kubelet.nodeIps()],
    api: undefined,
    stats: await kubelet.statistics.pages(),
  });
}

/** A file that other users must not change, and in some cases not read. */
interface ProtectedFile {
  readonly path: string;
  /** The maximum permissions of the file. */
  readonly mode: 0o600 | 0o644;
}

/** Returns the files with credentials and configuration of the node. */
export function protectedFiles({
  config,
  configFiles,
  flags,
}: Pick<LoadedConfig, 'config' | 'configFiles' | 'flags'>): readonly ProtectedFile[] {
  const own = [flags.kubeconfig, flags.bootstrapKubeconfig, ...configFiles];
  return [
    ...own.map((path) => ({ path, mode: 0o600 }) as const),
    { path: config.authentication.x509.clientCAFile, mode: 0o644 } as const,
  ].filter(({ path }) => path !== '');
}

/** Logs each file with too permissive a mode or with an owner other than root. Never rejects. */
export async function reportLooseModes(files: readonly ProtectedFile[], logger: Logger): Promise<void> {
  for (const { path, mode } of files) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    const given = found.mode & 0o777;
    const must = `0${mode.toString(8)}`;
    if ((given & ~mode & 0o077) !== 0)
      logger.warn('File permissions are too wide', { path, mode: `0${given.toString(8)}`, must });
    if (found.uid !== 0 && process.getuid?.() === 0)
      logger.warn('File does not belong to root', { path, uid: found.uid });
  }
}
