import { join } from 'node:path';
import { shutDownStatus } from '../checkpoints/index.ts';
import type { NodeShutdown } from '../node/shutdown/index.ts';
import type { ClusterPods } from './kubelet-deps.ts';
import type { KubeletState } from './stages/state.ts';

/**
 * Creates the manager of node shutdowns. Returns undefined for a node that does not delay its
 * shutdown, so that the code of the manager is not loaded.
 */
export async function openNodeShutdown(
  state: KubeletState,
  clusterPods: ClusterPods | undefined,
): Promise<NodeShutdown | undefined> {
  const { settings, deps, node, control, queries, facts, checkpoints } = state;
  const { shutdownGroups: groups = [], rootDir } = settings;
  if (groups.length === 0) return undefined;
  const { NodeShutdown, shutdownTimes } = await import('../node/shutdown/index.ts');
  const { clock, random, logger, machine, cluster } = deps;
  return new NodeShutdown({
    clock,
    random,
    logger,
    groups,
    announcer: machine.shutdowns,
    event: (event) => node.event(event),
    changed: () => cluster?.nodeChanged(),
    activePods: () => facts.activePods(),
    async terminatePod(pod, graceOverrideSeconds, signal) {
      const kill = { why: 'other' as const, graceOverrideSeconds, statusFn: shutDownStatus };
      await control.killPodNow(pod, kill, signal);
      // Waits until the volumes of the pod are unmounted, because unmounting may need pods that are
      // stopped later in the shutdown, such as CSI drivers.
      while (!queries.shouldPodBeFinished(pod.metadata.uid)) await clock.sleep(pollMs, signal);
    },
    async reported(pods, signal) {
      const uids = pods.map(({ metadata }) => metadata.uid);
      await Promise.all([checkpoints.flushed(), clusterPods?.statusesWritten(uids, signal)]);
    },
    observe: shutdownTimes(join(rootDir, 'graceful_node_shutdown_state'), { ...deps, files: machine.files }),
  });
}

const pollMs = 50;
