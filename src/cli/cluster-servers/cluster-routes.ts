import { join } from 'node:path';
import { type LoadedConfig, maskSecrets, toWire } from '../../config/index.ts';
import type { CriClient } from '../../cri/index.ts';
import type { Clock, Logger, MetricRegistry, Verbosity } from '../../lib/index.ts';
import { disabledRoute, healthRoutes, type Route, type StreamRoutes } from '../../server/index.ts';
import {
  CheckpointFolder,
  checkpointRoute,
  configzRoute,
  debugFlagsRoute,
  HealthSlis,
  logTree,
  systemJournal,
  systemLogsRoute,
} from '../../server/remote/index.ts';
import { nodeRoutes, type ServedKubelet } from '../node-routes.ts';
import { runtimeFreezer } from './freezer.ts';

export interface ClusterRoutesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly loaded: Pick<LoadedConfig, 'config' | 'gates'>;
  readonly kubelet: ServedKubelet;
  readonly cri: CriClient;
  readonly verbosity: Pick<Verbosity, 'setLevel'>;
  readonly rootDir: string;
  /** Where the host's services write their logs. */
  readonly hostLogs?: string | undefined;
}

const defaultHostLogs = '/var/log';

/** Everything the node offers to others. To be served behind a gate only: none of it asks who calls. */
export function clusterRoutes(options: ClusterRoutesOptions): StreamRoutes {
  const { clock, logger, metrics, loaded, kubelet, cri } = options;
  const { config, gates } = loaded;
  const slis = new HealthSlis((error) => logger.error('Cannot collect a metric', error));
  const { live, ready } = kubelet.health;
  const { routes, upgrades } = nodeRoutes({
    clock,
    kubelet,
    metrics,
    cri,
    podLogsDir: config.podLogsDir,
    splitStreams: gates.enabled('PodLogsQuerySplitStreams') ? 'on' : 'off',
    streamingIdleMs: config.streamingConnectionIdleTimeoutMs,
    token: undefined,
  });
  return {
    routes: [
      ...healthRoutes(slis.observed(live, 'healthz'), ready),
      slis.route,
      ...routes,
      configzRoute(() => toWire(maskSecrets(config))),
      ...operatorRoutes(options),
    ],
    upgrades,
  };
}

/** What is for those who look after the node, each with a switch of its own. */
function operatorRoutes({ loaded, verbosity, ...rest }: ClusterRoutesOptions): readonly Route[] {
  const { config, gates } = loaded;
  const { clock, hostLogs = defaultHostLogs } = rest;
  const journal = config.enableSystemLogQuery ? systemJournal(clock) : undefined;
  return [
    debugFlagsRoute(config.enableDebugFlagsHandler ? verbosity : 'disabled'),
    systemLogsRoute(config.enableSystemLogHandler ? { clock, tree: logTree(hostLogs), journal } : 'disabled'),
    ...(config.enableProfilingHandler
      ? []
      : [disabledRoute('/debug/pprof/', 'profiling endpoint is disabled.\n')]),
    ...(gates.enabled('ContainerCheckpoint') ? [checkpoints(rest)] : []),
  ];
}

type CheckpointOptions = Pick<ClusterRoutesOptions, 'clock' | 'logger' | 'kubelet' | 'cri' | 'rootDir'>;

function checkpoints({ clock, logger, kubelet, cri, rootDir }: CheckpointOptions): Route {
  const folder = new CheckpointFolder({
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
