import { join } from 'node:path';
import { shutDownStatus } from '../checkpoints/index.ts';
import type { MetricRegistry } from '../lib/index.ts';
import type { NodeShutdown } from '../node/shutdown/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletState } from './stages/state.ts';

/** Undefined for a node that does not delay its shutdown, which loads no code for it. */
export async function openNodeShutdown(state: KubeletState): Promise<NodeShutdown | undefined> {
  const { settings, deps, node, control, queries, facts, checkpoints } = state;
  const { shutdownGroups: groups = [], rootDir } = settings;
  if (groups.length === 0) return undefined;
  const { NodeShutdown } = await import('../node/shutdown/index.ts');
  const { clock, random, logger, machine, cluster } = deps;
  return new NodeShutdown({
    clock,
    random,
    logger,
    groups,
    announcer: machine.shutdowns,
    event: (event) => node.event(event),
    changed: () => cluster?.nodeChanged?.(),
    activePods: () => facts.active(),
    async terminatePod(pod, graceOverrideSeconds, signal) {
      const kill = { why: 'other' as const, graceOverrideSeconds, statusFn: shutDownStatus };
      await control.killPodNow(pod, kill, signal);
      // Pods that still run may be needed to unmount the volumes of this one.
      while (!queries.shouldPodBeFinished(pod.metadata.uid)) await clock.sleep(lookMs, signal);
    },
    async reported(pods, signal) {
      const uids = pods.map(({ metadata }) => metadata.uid);
      await Promise.all([checkpoints.settled(), cluster?.statusesWritten?.(uids, signal)]);
    },
    observe: shutdownTimes(join(rootDir, 'graceful_node_shutdown_state'), deps),
  });
}

const lookMs = 50;

/** When pods were last ended with the machine; the next kubelet on the same files shows it too. */
function shutdownTimes(
  path: string,
  { clock, metrics, machine: { files }, logger }: KubeletDeps,
): (when: 'start' | 'end') => void {
  const gauges = shutdownMetrics(metrics);
  const show = ({ startTime, endTime }: ShutdownTimes) => {
    gauges.start.set(secondsOf(startTime));
    gauges.end.set(secondsOf(endTime));
  };
  const before = files.readEnd(path, 4_096).then((text) => text && show(JSON.parse(text.toString('utf8'))));
  before.catch((error: unknown) => logger.error('Cannot read when the node was last shut down', error));
  let times: ShutdownTimes = {};
  return (when) => {
    const now = new Date(clock.now()).toISOString();
    times = when === 'start' ? { startTime: now } : { ...times, endTime: now };
    show(times);
    files
      .replace(path, JSON.stringify(times), { mode: 0o600 })
      .catch((error: unknown) => logger.error('Cannot note when the node is shut down', error));
  };
}

interface ShutdownTimes {
  readonly startTime?: string;
  readonly endTime?: string;
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : (Date.parse(time) || 0) / 1_000;
}

function shutdownMetrics(registry: MetricRegistry) {
  const gauge = (when: string) =>
    registry
      .gauge({
        name: `kubelet_graceful_shutdown_${when}_time_seconds`,
        help: `When ending the pods for a shutdown of the machine last came to its ${when}, in seconds since 1970.`,
      })
      .with({});
  return { start: gauge('start'), end: gauge('end') };
}
