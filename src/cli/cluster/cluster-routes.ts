import { join } from 'node:path';
import { flagTexts, type LoadedConfig, maskSecrets, toWire } from '../../config/index.ts';
import type { CriClient } from '../../cri/index.ts';
import type { ContainerImage } from '../../kinds/index.ts';
import type { Clock, Logger, MetricRegistry, Verbosity } from '../../lib/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { RuntimePod } from '../../pods/index.ts';
import {
  disabledRoute,
  type HealthCheck,
  healthRoutes,
  type Route,
  type StatsView,
  type StreamRoutes,
  statsRoutes,
} from '../../server/index.ts';
import type { ContainerCheckpointer } from '../../server/remote/index.ts';
import {
  CheckpointDirectory,
  checkpointRoute,
  configzRoute,
  createLogTree,
  debugFlagsRoute,
  flagzRoute,
  HealthSlis,
  imagesRoute,
  statuszRoute,
  systemJournal,
  systemLogsRoute,
} from '../../server/remote/index.ts';
import { nodeRoutes, type ServedKubelet } from '../kubelet/node-routes.ts';
import { kubernetesVersion } from '../version.ts';

export interface ClusterRoutesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly loaded: Pick<LoadedConfig, 'config' | 'gates' | 'flags'>;
  readonly kubelet: ServedKubelet;
  readonly cri: CriClient;
  readonly verbosity: Pick<Verbosity, 'setLevel'>;
  readonly rootDir: string;
  /** The directory with the logs of the host's services. */
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
  /**
   * Returns all images of the node, including those not listed in the Node object; the endpoint is
   * not served when undefined.
   */
  readonly images?: (() => readonly ContainerImage[]) | undefined;
}

const defaultHostLogs = '/var/log';

/**
 * Returns all endpoints of the node. The server must authenticate and authorize clients before it
 * calls them, because the endpoints themselves do not.
 */
export function clusterRoutes(options: ClusterRoutesOptions): StreamRoutes {
  const { clock, logger, metrics, loaded, kubelet, cri } = options;
  const { config, gates } = loaded;
  const slis = new HealthSlis((error) => logger.error('Failed to collect metric', error));
  const { health } = kubelet;
  const live = [...health.live, ...(options.vitalChecks ?? [])];
  const ready = [...health.ready, ...(options.readyChecks ?? [])];
  const { routes, upgrades } = nodeRoutes({
    clock,
    kubelet,
    metrics,
    cri,
    podLogsDir: config.podLogsDir,
    splitStreams: gates.enabled('PodLogsQuerySplitStreams') ? 'on' : 'off',
    streamingIdleMs: config.streamingConnectionIdleTimeoutMs,
  });
  const all = [
    ...healthRoutes(slis.observed(live, 'healthz'), ready),
    slis.route,
    ...routes,
    ...(options.stats === undefined ? [] : statsRoutes(options.stats)),
    configzRoute(() => toWire(maskSecrets(config))),
    ...(options.images === undefined ? [] : [imagesRoute(options.images)]),
    ...operatorRoutes(options),
  ];
  return { routes: [...all, ...statusPages(options, all)], upgrades };
}

/** Endpoints with the version, start time and flags of the process. */
function statusPages(
  { clock, loaded }: ClusterRoutesOptions,
  nodeRoutes: readonly Route[],
): readonly Route[] {
  const { gates, flags } = loaded;
  const facts = {
    clock,
    startMs: clock.now() - process.uptime() * 1_000,
    version: kubernetesVersion.slice(1),
    platform: `nodejs ${process.versions.node}`,
    paths: () => [...new Set(nodeRoutes.map(({ path }) => path))].sort(),
  };
  return [
    ...(gates.enabled('ComponentStatusz') ? [statuszRoute(facts)] : []),
    ...(gates.enabled('ComponentFlagz') ? [flagzRoute(() => flagTexts(flags))] : []),
  ];
}

/** Endpoints for operators, each enabled by a separate field of the configuration. */
function operatorRoutes({ loaded, verbosity, ...rest }: ClusterRoutesOptions): readonly Route[] {
  const { config, gates } = loaded;
  const { clock, hostLogs = defaultHostLogs } = rest;
  const journal = config.enableSystemLogQuery ? systemJournal(clock) : undefined;
  return [
    debugFlagsRoute(config.enableDebugFlagsHandler ? verbosity : 'disabled'),
    systemLogsRoute(
      config.enableSystemLogHandler ? { clock, tree: createLogTree(hostLogs), journal } : 'disabled',
    ),
    ...(config.enableProfilingHandler
      ? []
      : [disabledRoute('/debug/pprof/', 'profiling endpoint is disabled.\n')]),
    ...(gates.enabled('ContainerCheckpoint') ? [checkpoints(rest)] : []),
  ];
}

type CheckpointOptions = Pick<ClusterRoutesOptions, 'clock' | 'logger' | 'kubelet' | 'cri' | 'rootDir'>;

function checkpoints({ clock, logger, kubelet, cri, rootDir }: CheckpointOptions): Route {
  const folder = new CheckpointDirectory({
    directory: join(rootDir, 'checkpoints'),
    freezer: runtimeFreezer({ cri, running: kubelet.running }),
    clock,
    logger,
  });
  return checkpointRoute({
    getPodByName: (namespace, name) => kubelet.streams.getPodByName(namespace, name),
    checkpoint: (...request) => folder.checkpoint(...request),
  });
}

export interface FreezerDeps {
  readonly cri: Pick<CriClient, 'checkpointContainer'>;
  readonly running: { get(signal: AbortSignal): Promise<readonly RuntimePod[]> };
}

/** Creates checkpoints of running containers through the runtime. */
function runtimeFreezer({ cri, running }: FreezerDeps): ContainerCheckpointer {
  return {
    async checkpoint(pod, container, location, timeoutSeconds, signal) {
      const found = (await running.get(signal)).find(({ uid }) => uid === pod.metadata.uid);
      const instance = found?.containers.find(({ name }) => name === container);
      if (instance === undefined) {
        throw new KubelingError(
          'CRI_NOT_FOUND',
          `Cannot checkpoint the container ${container}: it is not running`,
        );
      }
      const timeout = BigInt(timeoutSeconds ?? 0);
      await cri.checkpointContainer({ containerId: instance.id, location, timeout }, signal);
    },
  };
}
