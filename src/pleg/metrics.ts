import type { MetricRegistry } from '../lib/index.ts';
import type { Tally } from './pod-records.ts';

/** Told what the generator does, to be counted. Never throws. */
export interface PlegObserver {
  /** All pods were listed, or could not be; `sinceLastMs` is from the beginning of the one before. */
  relisted(ms: number, sinceLastMs: number | undefined): void;
  /** One pod was looked at by itself. */
  podRelisted(ms: number): void;
  /** All pods were listed. */
  listed(atMs: number): void;
  /** What there is, after any look that found a change and after each at all pods. */
  counted(tally: Tally): void;
  discarded(): void;
  streamOpened(): void;
  streamFailed(): void;
  /** How long an event took to reach us. */
  eventArrived(latencyMs: number): void;
  /** Whether events can be relied on. */
  trusted(state: 'trusted' | 'untrusted'): void;
}

const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const containerStates = ['created', 'running', 'exited', 'unknown'] as const;

/** Make one for a registry; the names are those dashboards know. */
export function plegMetrics(registry: MetricRegistry): PlegObserver {
  const histogram = (name: string, help: string) =>
    registry.histogram({ name, help, buckets: defaultBuckets }).with({});
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with({});
  const relist = histogram('kubelet_pleg_relist_duration_seconds', 'How long looks at all pods took.');
  const interval = histogram('kubelet_pleg_relist_interval_seconds', 'Time between looks at all pods.');
  const one = histogram('kubelet_pleg_pod_relist_duration_seconds', 'How long looks at one pod took.');
  const lastSeen = gauge('kubelet_pleg_last_seen_seconds', 'When all pods were last listed, as Unix time.');
  const discarded = counter(
    'kubelet_pleg_discard_events',
    'Events dropped because nobody took them in time.',
  );
  const runningPods = gauge('kubelet_running_pods', 'Pods with a ready sandbox.');
  const containers = registry.gauge({
    name: 'kubelet_running_containers',
    help: 'Containers the runtime has, by state.',
    labels: ['container_state'],
  });
  const opened = counter(
    'kubelet_evented_pleg_connection_success_count',
    'Streams of runtime events that were opened.',
  );
  const failed = counter(
    'kubelet_evented_pleg_connection_error_count',
    'Streams of runtime events that could not be opened or broke.',
  );
  const latency = histogram(
    'kubelet_evented_pleg_connection_latency_seconds',
    'Time from an event in the runtime to its arrival here.',
  );
  const trusted = gauge(
    'kubeling_pleg_events_trusted',
    '1 while runtime events are proven to arrive, else 0.',
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
