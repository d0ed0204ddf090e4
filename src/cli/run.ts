import {
  describeFinding,
  evictionTable,
  hostFiles,
  kubeletFlagHelp,
  type LoadedConfig,
  loadConfig,
  parseCommandLine,
  renderConfig,
} from '../config/index.ts';
import { type CriClient, createCriClient, criMetrics, wireTransport } from '../cri/index.ts';
import type { KubeletSettings } from '../kubelet/index.ts';
import { descriptorOutput, type Logger, MetricRegistry, openLog, Verbosity } from '../lib/index.ts';
import type { Cluster, ClusterDeps } from './cluster.ts';
import { type Command, type CommandContext, exitCodes } from './command.ts';
import { credentialPlugins, kubeletSettings, settleWithRuntime } from './kubelet-settings.ts';
import { openNode } from './node-process.ts';
import { kubernetesVersion, command as version } from './version.ts';

const usage = `usage: kubeling run [flags]

Runs kubeling as the kubelet of a node. Takes the configuration file, the drop-in directory and the flags of the Go
kubelet. Pods come from the manifest directory, the manifest URL, and with --kubeconfig from the cluster it names.

${kubeletFlagHelp().trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { flags } = parseCommandLine(context.argv, process.cwd());
  if (flags.version === 'raw') {
    context.stdout.write(`${kubernetesVersion}\n`);
    return exitCodes.done;
  }
  if (flags.version !== '') return await version.run({ ...context, argv: [] });
  const loaded = await loadConfig(context.argv, { files: hostFiles(), cwd: process.cwd() }, context.signal);
  // Before anything is touched, and also when the configuration is only to be checked.
  await credentialPlugins(loaded);
  if (flags.printConfig || flags.validateConfig) return show(loaded, context);
  return await serve(loaded, context);
}

function show(loaded: LoadedConfig, { stdout, stderr }: CommandContext): number {
  for (const warning of loaded.warnings) stderr.write(`warning: ${describeFinding(warning)}\n`);
  if (loaded.flags.printConfig) stdout.write(renderConfig(loaded));
  return exitCodes.done;
}

async function serve(loaded: LoadedConfig, context: CommandContext): Promise<number> {
  const { clock, random, signal } = context;
  const { config } = loaded;
  const verbosity = verbosityOf(loaded);
  const { logger, sink } = openLog({
    clock,
    format: config.logging.format,
    output: descriptorOutput(2, clock),
    verbosity,
  });
  const metrics = new MetricRegistry({ onError: (error) => logger.error('Cannot collect a metric', error) });
  const cri = connect(loaded, metrics, context);
  try {
    tellConfig(loaded, logger);
    const { runtimeName, runtimeVersion } = await cri.checkVersion(signal);
    logger.info('Connected to the container runtime', { runtime: runtimeName, version: runtimeVersion });
    const deps = { cri, clock, random, logger, metrics };
    const alone = await settleWithRuntime(await kubeletSettings(loaded), loaded, deps, signal);
    const runtime = { name: runtimeName, version: runtimeVersion };
    await using cluster = await join(loaded, alone, { ...deps, runtime }, signal);
    const node = await openNode({
      ...deps,
      ...(cluster === undefined
        ? { settings: alone, port: config.port }
        : // What others reach is served beside it, with TLS.
          {
            settings: { ...alone, apiPods: 'expected' },
            port: 0,
            loopback: 'token-only',
            cluster: cluster.node,
          }),
      runtimeName,
      healthzPort: config.healthzPort,
      portTaken: 'fail',
      streamingIdleMs: config.streamingConnectionIdleTimeoutMs,
    });
    await using servers = await cluster?.serve({ ...deps, loaded, kubelet: node.kubelet, verbosity });
    const port = servers?.port ?? node.port;
    logger.info('The kubelet answers', { port, healthzPort: config.healthzPort });
    await Promise.all([node.run(signal), servers?.run(signal)]);
    logger.info('Ending as asked; containers keep running');
    return exitCodes.done;
  } finally {
    cri.close();
    sink.flushSync();
  }
}

/** Undefined for a node that stands alone, which need not load what ties others to their clusters. */
async function join(
  loaded: LoadedConfig,
  settings: KubeletSettings,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  if (loaded.flags.kubeconfig === '') return undefined;
  const { openCluster } = await import('./cluster.ts');
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
  const modules = config.logging.vmodule.map(({ filePattern, verbosity }) => ({
    pattern: filePattern,
    level: verbosity,
  }));
  return new Verbosity(config.logging.verbosity, modules);
}

/** What a reader of the log needs to know of how this kubelet was set up. */
function tellConfig(loaded: LoadedConfig, logger: Logger): void {
  for (const warning of loaded.warnings) logger.warn(describeFinding(warning));
  logger.info('Configuration read', { files: loaded.configFiles.join(' ') || 'none' });
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
