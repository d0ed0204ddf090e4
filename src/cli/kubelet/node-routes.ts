import type { CriClient } from '../../cri/index.ts';
import type { Clock, MetricRegistry } from '../../lib/index.ts';
import type { Pod, RuntimePod } from '../../pods/index.ts';
import { ContainerLogs, type LogFollowers, parseLogTime, realLogFiles } from '../../runtime/index.ts';
import {
  containerLogsRoute,
  type HealthCheck,
  type KubeletView,
  kubeletRoutes,
  type Route,
  type StreamingHost,
  type StreamRoutes,
  streamRoutes,
  upgradeDialer,
} from '../../server/index.ts';
import { describeProblem, type SourceProblem } from '../../sources/index.ts';

/** What servers need from a kubelet: its status, and access to its pods. */
export interface ServedKubelet {
  readonly health: { readonly live: readonly HealthCheck[]; readonly ready: readonly HealthCheck[] };
  readonly running: { get(signal: AbortSignal): Promise<readonly RuntimePod[]> };
  readonly streams: StreamingHost;
  readonly flights: { all(): readonly unknown[]; find(key: string): readonly unknown[] };
  readonly node: { story(): unknown };
  readonly probes: { readonly metrics: MetricRegistry };
  readonly logFollowers: LogFollowers;
  podsToReport(): Promise<readonly Pod[]>;
  podsWithStatus(): readonly Pod[];
  sourceProblems(): readonly SourceProblem[];
  sourceProblemsOf(key: string): readonly SourceProblem[];
}

export interface NodeRoutesOptions {
  readonly clock: Clock;
  readonly kubelet: ServedKubelet;
  /** The registry served under /metrics. */
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly podLogsDir: string;
  readonly splitStreams: 'on' | 'off';
  /** The idle timeout of exec, attach and port-forward; 0 for none. */
  readonly streamingIdleMs: number;
}

/**
 * Returns all endpoints of the node except health. Their listener must authenticate and authorize
 * clients, because the endpoints themselves do not.
 */
export function nodeRoutes(options: NodeRoutesOptions): StreamRoutes {
  const { clock, kubelet, metrics, streamingIdleMs: idleMs } = options;
  const streams = streamRoutes(kubelet.streams, { clock, dial: upgradeDialer(clock), idleMs });
  return {
    routes: [
      ...kubeletRoutes(viewOf(kubelet), metrics, { probes: kubelet.probes.metrics }),
      ...streams.routes,
      logsRoute(options),
    ],
    upgrades: streams.upgrades,
  };
}

function viewOf(kubelet: ServedKubelet): KubeletView {
  return {
    pods: () => kubelet.podsToReport(),
    runningPods: (signal) => kubelet.running.get(signal),
    flights: (key) => ({
      ...(key === undefined ? { node: kubelet.node.story() } : {}),
      pods: key === undefined ? kubelet.flights.all() : kubelet.flights.find(key),
      problems: (key === undefined ? kubelet.sourceProblems() : kubelet.sourceProblemsOf(key)).map(
        describeProblem,
      ),
    }),
  };
}

function logsRoute({ kubelet, clock, cri, podLogsDir, splitStreams }: NodeRoutesOptions): Route {
  const logs = new ContainerLogs({
    clock,
    cri,
    podLogsDir,
    files: realLogFiles(podLogsDir),
    followers: kubelet.logFollowers,
  });
  return containerLogsRoute({
    clock,
    pods: () => kubelet.podsWithStatus(),
    open: (request, signal) => logs.open(request, signal),
    parseTime: parseLogTime,
    splitStreams,
  });
}
