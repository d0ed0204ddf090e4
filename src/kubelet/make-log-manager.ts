import type { PodCache } from '../pleg/index.ts';
import { ContainerLogManager, type LogFollowers, type LoggingContainer } from '../runtime/index.ts';
import type { BackgroundLoops } from './background.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletSettings } from './settings.ts';

/** What rotates the logs of containers; nothing where they may grow. */
export function logLoops(
  { containerLogs: policy, podLogsDir }: KubeletSettings,
  { clock, logger, cri, machine: { logFiles: files } }: KubeletDeps,
  { cache, followers }: { readonly cache: Pick<PodCache, 'all'>; readonly followers: LogFollowers },
): BackgroundLoops['again'] {
  if (policy === undefined || files === undefined) return {};
  const containers = () => loggingContainers(cache);
  const deps = { cri, clock, logger, files, policy, podLogsDir, containers, followers };
  return { 'container logs': new ContainerLogManager(deps) };
}

function* loggingContainers(cache: Pick<PodCache, 'all'>): Iterable<LoggingContainer> {
  for (const pod of cache.all()) {
    for (const { id, state, logPath } of pod.containers) {
      if (state === 'running') yield { id, logPath, state };
      else if (state === 'exited') yield { id, logPath, state: 'ended' };
    }
  }
}
