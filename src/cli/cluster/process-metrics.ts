import { readdir, readFile } from 'node:fs/promises';
import type { LoadedConfig } from '../../config/index.ts';
import {
  type Clock,
  detectCgroupLayout,
  type MetricRegistry,
  realCgroupHost,
  type SampledFamily,
} from '../../lib/index.ts';
import { openFileLimits } from '../service/service-manager.ts';
import { kubernetesVersion } from '../version.ts';

export interface ProcessMetricsOptions {
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly gates: LoadedConfig['gates'];
  readonly nodeName: string;
}

/**
 * Exports the metrics of every Kubernetes component: version, feature gates and usage of the
 * process.
 */
export function exposeProcess({ metrics, clock, gates, nodeName }: ProcessMetricsOptions): Disposable {
  const startSeconds = Math.round(clock.now() - process.uptime() * 1_000) / 1_000;
  const fixed = [buildInfo(), gateStates(gates), nodeInfo(nodeName)];
  const layout = detectCgroupLayout(realCgroupHost()).catch(() => undefined);
  return metrics.collect(async () => [
    ...fixed,
    gauge('kubelet_cgroup_version', 'Which version of cgroups the machine has.', (await layout)?.version),
    ...(await processUse(startSeconds)),
    ...engineUse(),
  ]);
}

function nodeInfo(node: string): SampledFamily {
  const help = 'The name of the node; always 1.';
  return { name: 'kubelet_node_name', type: 'gauge', help, samples: [{ labels: { node }, value: 1 }] };
}

/** Exports metrics of Node.js under their usual names. */
function engineUse(): readonly SampledFamily[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  const version = `v${process.versions.node}`;
  return [
    gauge('nodejs_heap_size_total_bytes', 'Memory Node.js has taken for objects.', heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'Memory in which there are objects.', heapUsed),
    gauge('nodejs_external_memory_bytes', 'Memory outside of the heap that objects hold.', external),
    gauge(
      'nodejs_active_resources_total',
      'Connections, timers and other things that keep the process at work.',
      process.getActiveResourcesInfo().length,
    ),
    gauge(
      'nodejs_eventloop_utilization',
      'The part of the time since the start in which the process was at work.',
      performance.eventLoopUtilization().utilization,
    ),
    {
      name: 'nodejs_version_info',
      type: 'gauge',
      help: 'Which Node.js this runs on; always 1.',
      samples: [{ labels: { version }, value: 1 }],
    },
  ];
}

async function processUse(startSeconds: number): Promise<readonly SampledFamily[]> {
  const [status, limits, files] = await Promise.all([
    readFile('/proc/self/status', 'utf8'),
    readFile('/proc/self/limits', 'utf8'),
    readdir('/proc/self/fd'),
  ]);
  const { user, system } = process.cpuUsage();
  const virtualBytes = Number(/^VmSize:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1_024;
  return [
    {
      name: 'process_cpu_seconds_total',
      type: 'counter',
      help: 'Seconds of CPU time the process has used.',
      samples: [{ value: (user + system) / 1e6 }],
    },
    gauge(
      'process_resident_memory_bytes',
      'Memory of the process that is in use.',
      process.memoryUsage.rss(),
    ),
    gauge('process_virtual_memory_bytes', 'Memory the process has addresses for.', virtualBytes),
    gauge('process_open_fds', 'Files the process has open.', files.length),
    gauge('process_max_fds', 'Files the process may have open.', openFileLimits(limits).soft),
    gauge('process_start_time_seconds', 'When the process began, in seconds since 1970.', startSeconds),
  ];
}

function gauge(name: string, help: string, value: number | undefined): SampledFamily {
  return { name, type: 'gauge', help, samples: [{ value }] };
}

function buildInfo(): SampledFamily {
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(kubernetesVersion) ?? [];
  const platform = `${process.platform}/${process.arch}`;
  return {
    name: 'kubernetes_build_info',
    type: 'gauge',
    help: 'Which release of Kubernetes this is; always 1.',
    samples: [{ labels: { major, minor, git_version: kubernetesVersion, platform }, value: 1 }],
  };
}

/**
 * The metric values of the feature gate stages, as in Kubernetes; the stage of a GA gate is empty.
 */
const stages = { alpha: 'ALPHA', beta: 'BETA', stable: '', deprecated: 'DEPRECATED' } as const;

function gateStates(gates: LoadedConfig['gates']): SampledFamily {
  return {
    name: 'kubernetes_feature_enabled',
    type: 'gauge',
    help: 'Whether a feature gate is on: 1 if so.',
    samples: gates.list().map(({ name, stage, enabled }) => ({
      labels: { name, stage: stages[stage] },
      value: enabled ? 1 : 0,
    })),
  };
}
