import type { SampledFamily } from '../lib/index.ts';
import type { NodeStats, Usage } from './node-stats.ts';

/** The metrics by which pods are scaled and `kubectl top` counts; undefined stats are a failed look. */
export function resourceMetrics(stats: NodeStats | undefined): readonly SampledFamily[] {
  const failed = {
    name: 'resource_scrape_error',
    type: 'gauge',
    help: 'Whether what was used could not be found out: 1 if so.',
    samples: [{ value: stats === undefined ? 1 : 0 }],
  } as const;
  return [...(stats === undefined ? [] : familiesOf(stats)), failed];
}

function familiesOf({ usage, pods }: NodeStats): readonly SampledFamily[] {
  const node = [{ labels: {}, usage }];
  const podRows = pods.map(({ name, namespace, usage: used }) => ({
    labels: { pod: name, namespace },
    usage: used,
  }));
  const rows = pods.flatMap(({ name: pod, namespace, containers }) =>
    containers.map(({ name: container, usage: used, startTime }) => ({
      labels: { container, pod, namespace },
      usage: used,
      startTime,
    })),
  );
  return [
    ...usedBy('node', 'the node', node),
    ...usedBy('pod', 'the pod', podRows),
    ...usedBy('container', 'the container', rows),
    swapLimits(rows),
    {
      name: 'container_start_time_seconds',
      type: 'gauge',
      help: 'When the container was started, in seconds since 1970.',
      samples: rows.map(({ labels, startTime }) => ({
        labels,
        value: startTime === undefined ? undefined : Date.parse(startTime) / 1_000,
      })),
    },
  ];
}

interface Row {
  readonly labels: Readonly<Record<string, string>>;
  readonly usage: Usage;
}

/** Of what is not held to one the limit is not told. */
function swapLimits(rows: readonly Row[]): SampledFamily {
  return {
    name: 'container_swap_limit_bytes',
    type: 'gauge',
    help: 'The most swap the container may use.',
    samples: rows.map(({ labels, usage: { atMs, swapBytes, swapAvailableBytes } }) => ({
      labels,
      value:
        swapBytes === undefined || swapAvailableBytes === undefined
          ? undefined
          : swapBytes + swapAvailableBytes,
      timestampMs: atMs,
    })),
  };
}

function usedBy(prefix: string, whom: string, rows: readonly Row[]): readonly SampledFamily[] {
  const samples = (amount: (usage: Usage) => number | undefined) =>
    rows.map(({ labels, usage }) => ({ labels, value: amount(usage), timestampMs: usage.atMs }));
  return [
    {
      name: `${prefix}_cpu_usage_seconds_total`,
      type: 'counter',
      help: `Seconds of CPU time ${whom} has used.`,
      samples: samples(({ cpuNanos }) => (cpuNanos === undefined ? undefined : cpuNanos / 1e9)),
    },
    {
      name: `${prefix}_memory_working_set_bytes`,
      type: 'gauge',
      help: `Memory ${whom} uses and could not give back at once.`,
      samples: samples(({ memory }) => memory?.workingSetBytes),
    },
    {
      name: `${prefix}_swap_usage_bytes`,
      type: 'gauge',
      help: `Swap ${whom} uses.`,
      samples: samples(({ swapBytes }) => swapBytes),
    },
  ];
}
