import type { MetricRegistry } from '../lib/index.ts';
import type { Tally } from './pod-records.ts';

/** Records the PLEG's metrics. Never throws. */
export interface PlegObserver {
  /**
   * Called when all pods were relisted, or the relist failed; `sinceLastMs` is the time since the
   * start of the previous relist.
   */
  relisted(ms: number, sinceLastMs: number | undefined): void;
  /** Called when one pod was relisted. */
  podRelisted(ms: number): void;
  /** Called when the runtime has listed all pods. */
  listed(atMs: number): void;
  /**
   * Called with the number of pods and containers after each relist that found a change, and after
   * each relist of all pods.
   */
  counted(tally: Tally): void;
  discarded(): void;
  streamOpened(): void;
  streamFailed(): void;
  /** Called with the latency of a runtime event. */
  eventArrived(latencyMs: number): void;
  /** Called when the trust in runtime events changes. */
  trusted(state: 'trusted' | 'untrusted'): void;
}

const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const containerStates = ['created', 'running', 'exited', 'unknown'] as const;

/** Registers the Go kubelet's PLEG metrics. */
export function plegMetrics(registry: MetricRegistry): PlegObserver {
  const histogram = (name: string, help: string) =>
    registry.histogram({ name, help, buckets: defaultBuckets }).with({});
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with({});
  const relist = histogram('kubelet_pleg_relist_duration_seconds', 'Duration of relists of all pods.');
  const interval = histogram('kubelet_pleg_relist_interval_seconds', 'Time between relists of all pods.');
  const one = histogram('kubelet_pleg_pod_relist_duration_seconds', 'Duration of relists of one pod.');
  const lastSeen = gauge('kubelet_pleg_last_seen_seconds', 'Unix time of the last complete listing.');
  const discarded = counter('kubelet_pleg_discard_events', 'Events dropped because the queue was full.');
  const runningPods = gauge('kubelet_running_pods', 'Pods with a ready sandbox.');
  const containers = registry.gauge({
    name: 'kubelet_running_containers',
    help: 'Containers of the runtime by state.',
    labels: ['container_state'],
  });
  const opened = counter('kubelet_evented_pleg_connection_success_count', 'Runtime event streams opened.');
  const failed = counter(
    'kubelet_evented_pleg_connection_error_count',
    'Runtime event streams that failed to open or broke.',
  );
  const latency = histogram('kubelet_evented_pleg_connection_latency_seconds', 'Latency of runtime events.');
  const trusted = gauge(
    'kubeling_pleg_events_trusted',
    '1 while runtime events are proven to arrive, otherwise 0.',
  );
  return {
    relisted: (ms, sinceLastMs) => {
      relist.observe(ms / 1_000);
      if (sinceLastMs !== undefined) interval.observe(sinceLastMs / 1_000);
    },
    podRelisted: (ms) => one.observe(ms / 1_000),
    listed: (atMs) => lastSeen.set(atMs / 1_000),
    counted: (tally) => {
      runningPods.set(tally.runningPods);
      for (const state of containerStates)
        containers.with({ container_state: state }).set(tally.containers[state]);
    },
    discarded: () => discarded.inc(),
    streamOpened: () => opened.inc(),
    streamFailed: () => failed.inc(),
    eventArrived: (latencyMs) => latency.observe(Math.max(0, latencyMs) / 1_000),
    trusted: (state) => trusted.set(state === 'trusted' ? 1 : 0),
  };
}
