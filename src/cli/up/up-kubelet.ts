import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hostFiles, type LoadedConfig, loadConfig } from '../../config/index.ts';
import { busyboxImageName } from '../../containerd/index.ts';
import type { CriClient } from '../../cri/index.ts';
import type { KubeletSettings } from '../../kubelet/index.ts';
import type { Logger, MetricRegistry, Verbosity } from '../../lib/index.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { CommandContext } from '../command.ts';
import type { DataDirectory } from '../data-directory/data-directory.ts';
import { applyRuntimeVersion, kubeletSettings, ownPidLimits, socketOf } from '../kubelet/kubelet-settings.ts';
import { type Node, openNode } from '../kubelet/node-process.ts';
import { prepareRoot } from '../run/kubelet-directories.ts';
import type { ApiAccess } from './up-api.ts';

export interface UpKubeletOptions {
  readonly directory: DataDirectory;
  /** The cgroup that contains all pods. */
  readonly cgroupRoot: string;
  /** The endpoint of the runtime. */
  readonly endpoint: string;
  readonly cri: CriClient;
  readonly runtime: { readonly name: string; readonly version: string };
  /**
   * The users of the images: only pods of this node (`ours`), or also other clients, which may use
   * images that no pod of this node uses (`everybodys`).
   */
  readonly images: 'ours' | 'everybodys';
  /** The directory of sandboxes in the private containerd; undefined for another runtime. */
  readonly sandboxesDir: string | undefined;
  readonly metrics: MetricRegistry;
  readonly logger: Logger;
  readonly verbosity: Verbosity;
  readonly runtimeObserved: (error: unknown) => void;
  /** How long pods may take to stop when the machine shuts down; 0 disables graceful shutdown. */
  readonly shutdown: { readonly totalMs: number; readonly criticalMs: number };
  /** The maximum number of processes and threads of a pod; derived from the machine by default. */
  readonly podMaxPids: number | undefined;
  /** The embedded API to join; undefined without one. */
  readonly api: ApiAccess | undefined;
}

/** The kubelet of a data directory, with its servers. */
export interface UpKubelet extends AsyncDisposable {
  readonly node: Node;
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when the API can reach the kubelet. */
  reachable(signal: AbortSignal): Promise<void>;
}

/**
 * Opens the kubelet. Its pods come from the manifest directory, and from the API if there is one.
 */
export async function openUpKubelet(options: UpKubeletOptions, context: CommandContext): Promise<UpKubelet> {
  const { directory, api, logger, cri, runtime, verbosity, metrics } = options;
  const { clock, random, signal } = context;
  await mkdir(directory.manifests, { recursive: true, mode: 0o750 });
  await restrictMode(directory.podLogs);
  const loaded = await configOf(options, signal);
  const deps = { clock, random, logger, cri, metrics };
  const settings = await settingsOf(options, loaded, context);
  await using opened = new AsyncDisposableStack();
  const cluster =
    api === undefined ? undefined : opened.use(await joinApi(loaded, settings, { ...deps, runtime }, signal));
  const node = await openNode({
    ...deps,
    settings: cluster === undefined ? settings : { ...settings, apiPods: 'expected' },
    cluster: cluster?.node,
    runtimeName: runtime.name,
    runtimeObserved: options.runtimeObserved,
    // With an API the main port is any free port, which commands find through the port file.
    port: loaded.config.port,
    healthzPort: loaded.config.healthzPort,
    whenPortInUse: 'take-another',
    streamingIdleMs: loaded.config.streamingConnectionIdleTimeoutMs,
  });
  const { kubelet } = node;
  const servers = await cluster?.serve({
    ...deps,
    loaded,
    kubelet: kubelet.endpoints,
    verbosity,
    addressesDebounceMs: 0,
  });
  if (servers !== undefined) opened.use(servers);
  if (servers?.port !== undefined) api?.setKubeletPort(servers.port);
  const moved = opened.move();
  return {
    node,
    async run(inner) {
      await Promise.all([node.run(inner), servers?.run(inner)]);
    },
    reachable: async (inner) => await servers?.certified(inner),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

async function configOf(
  { directory, cgroupRoot, api, shutdown, podMaxPids }: UpKubeletOptions,
  signal: AbortSignal,
): Promise<LoadedConfig> {
  const argv = [
    `--root-dir=${directory.rootDir}`,
    `--pod-manifest-path=${directory.manifests}`,
    `--cgroup-root=${cgroupRoot}`,
    // Laptops often have swap, with which the kubelet would not start by default; pods do not use
    // the swap.
    '--fail-swap-on=false',
    ...(await pidFlags(podMaxPids)),
    ...(api === undefined ? [] : joiningFlags(directory, api)),
  ];
  const loaded = await loadConfig(argv, { files: hostFiles(), cwd: directory.dataDir }, signal);
  const { config } = loaded;
  // With an API, any free port is used, because the kubelet reports its port to the API.
  const port = api === undefined ? config.port : 0;
  const times = {
    shutdownGracePeriodMs: shutdown.totalMs,
    shutdownGracePeriodCriticalPodsMs: shutdown.criticalMs,
  };
  return { ...loaded, config: { ...config, ...times, port, podLogsDir: directory.podLogs } };
}

/**
 * Returns the flags that limit the processes of pods: without a limit, a fork bomb in one pod uses
 * up all process IDs, and the node cannot stop the pod.
 */
async function pidFlags(podMaxPids: number | undefined): Promise<readonly string[]> {
  const limits = await ownPidLimits();
  const perPod = podMaxPids ?? limits?.perPod;
  return [
    ...(limits === undefined ? [] : [`--kube-reserved=pid=${limits.reserved}`]),
    ...(perPod === undefined ? [] : [`--pod-max-pids=${perPod}`]),
  ];
}

/**
 * Returns the flags for joining the API. The kubelet listens on loopback only, because all clients
 * use it through the API.
 */
function joiningFlags(directory: DataDirectory, api: ApiAccess): readonly string[] {
  return [
    `--kubeconfig=${api.nodeKubeconfig}`,
    `--cert-dir=${join(directory.rootDir, 'pki')}`,
    `--client-ca-file=${api.clientCaFile}`,
    '--anonymous-auth=false',
    '--authentication-token-webhook=true',
    '--authorization-mode=Webhook',
    '--rotate-server-certificates=true',
    '--address=127.0.0.1',
    // There is no attach-detach controller, so the Node object must not declare that one attaches
    // its volumes.
    '--enable-controller-attach-detach=false',
  ];
}

/**
 * Restricts the log directory, because log file names contain the names of pods and containers.
 * Earlier releases created it readable for all users.
 */
async function restrictMode(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o750 });
  await chmod(path, 0o750);
}

async function settingsOf(
  { directory, endpoint, cri, logger, metrics, api, images, sandboxesDir }: UpKubeletOptions,
  loaded: LoadedConfig,
  { clock, signal }: CommandContext,
): Promise<KubeletSettings> {
  const settings = await applyRuntimeVersion(
    await kubeletSettings(loaded),
    loaded,
    { clock, logger, cri, metrics },
    signal,
  );
  return {
    ...settings,
    // Under node pressure new pods wait instead of being rejected, because no other node could run
    // them.
    underPressure: 'wait',
    // CSI controllers may run on this node and attach CSI volumes, so a pod waits until its CSI
    // volumes are attached instead of failing.
    attaching: 'cluster',
    startEvents: [...(await prepareRoot(directory.rootDir, clock, signal)), ...(settings.startEvents ?? [])],
    runtimeSocket: socketOf(endpoint),
    podLogsDir: directory.podLogs,
    sandboxesDir,
    logLinksDir: join(directory.podLogs, 'containers'),
    clusterDns: 'no-cluster',
    imageGc: images === 'ours' ? imageGcOf(settings) : undefined,
    ...(api === undefined ? {} : { manifestReferences: 'allowed' }),
  };
}

/**
 * Excludes images that kubeling itself has loaded from garbage collection, because no registry has
 * them.
 */
function imageGcOf({ imageGc }: KubeletSettings): KubeletSettings['imageGc'] {
  return imageGc && { ...imageGc, preserved: [busyboxImageName] };
}

/** Connects the kubelet to the API; loads the cluster code only if there is one. */
async function joinApi(
  loaded: LoadedConfig,
  settings: KubeletSettings,
  deps: Parameters<typeof import('../cluster/cluster.ts').openCluster>[2],
  signal: AbortSignal,
): Promise<Cluster> {
  const { openCluster } = await import('../cluster/cluster.ts');
  return await openCluster(loaded, settings, deps, signal);
}
