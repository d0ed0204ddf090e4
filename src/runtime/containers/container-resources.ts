import type { CriClient, LinuxContainerResources } from '../../cri/index.ts';
import { isKind } from '../../lib/index.ts';
import { type PodUid, podUid } from '../../pods/index.ts';
import { labels } from './labels.ts';

/** One container of a pod with the resources the runtime reports for it. */
export interface ReportedResources {
  readonly id: string;
  readonly isRunning: boolean;
  readonly uid: PodUid;
  readonly container: string;
  readonly linux: LinuxContainerResources | undefined;
}

/** One request for each container, so only for a kubelet that cannot use its own checkpoints. */
export async function readContainerResources(
  cri: Pick<CriClient, 'listContainers' | 'containerStatus'>,
  signal: AbortSignal,
): Promise<readonly ReportedResources[]> {
  const { containers } = await cri.listContainers({}, signal);
  const found: ReportedResources[] = [];
  for (const { id, state, labels: own } of containers) {
    const [uid, container] = [own[labels.podUid], own[labels.containerName]];
    if (uid === undefined || container === undefined) continue;
    const response = await cri.containerStatus({ containerId: id }, signal).catch((error: unknown) => {
      // The container was removed after it was listed.
      if (isKind(error, 'NotFound')) return undefined;
      throw error;
    });
    if (response === undefined) continue;
    const linux = response.status?.resources?.linux;
    found.push({ id, isRunning: state === 'CONTAINER_RUNNING', uid: podUid(uid), container, linux });
  }
  return found;
}

/** Moves a container to other CPUs or NUMA nodes; what is left out stays as it is. */
export async function updateContainerCpuset(
  cri: Pick<CriClient, 'updateContainerResources'>,
  containerId: string,
  linux: Pick<Partial<LinuxContainerResources>, 'cpusetCpus' | 'cpusetMems'>,
  signal: AbortSignal,
): Promise<void> {
  await cri.updateContainerResources({ containerId, linux }, signal);
}
