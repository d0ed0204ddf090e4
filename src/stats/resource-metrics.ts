import type { SampledFamily } from '../lib/index.ts';
import type { NodeStats, Usage } from './node-stats.ts';

/** Returns the metrics of `/metrics/resource`; undefined stats count as a failed scrape. */
export function resourceMetrics(stats: NodeStats | undefined): readonly SampledFamily[] {
  const failed = {
    name: 'resource_scrape_error',
    type: 'gauge',
    help: '1 if there was an error while getting container metrics, 0 otherwise.',
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
      help: 'Start time of the container in seconds since 1970.',
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

/** Metrics of swap limits; containers without a limit are omitted. */
function swapLimits(rows: readonly Row[]): SampledFamily {
  return {
    name: 'container_swap_limit_bytes',
    type: 'gauge',
    help: 'Swap limit of the container.',
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

function usedBy(prefix: string, consumer: string, rows: readonly Row[]): readonly SampledFamily[] {
  const samples = (amount: (usage: Usage) => number | undefined) =>
    rows.map(({ labels, usage }) => ({ labels, value: amount(usage), timestampMs: usage.atMs }));
  return [
    {
      name: `${prefix}_cpu_usage_seconds_total`,
      type: 'counter',
      help: `Cumulative CPU time of ${consumer} in seconds.`,
      samples: samples(({ cpuNanos }) => (cpuNanos === undefined ? undefined : cpuNanos / 1e9)),
    },
    {
      name: `${prefix}_memory_working_set_bytes`,
      type: 'gauge',
      help: `Working set memory of ${consumer}.`,
      samples: samples(({ memory }) => memory?.workingSetBytes),
    },
    {
      name: `${prefix}_swap_usage_bytes`,
      type: 'gauge',
      help: `Swap usage of ${consumer}.`,
      samples: samples(({ swapBytes }) => swapBytes),
    },
  ];
}
