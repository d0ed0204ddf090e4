import type { CriClient, LinuxContainerResources } from '../../cri/index.ts';
import { isKind } from '../../lib/index.ts';
import { type PodUid, podUid } from '../../pods/index.ts';
import { labels } from './labels.ts';

/** A container of a pod, with the resources that the runtime reports for it. */
export interface ReportedResources {
  readonly id: string;
  readonly isRunning: boolean;
  readonly uid: PodUid;
  readonly container: string;
  readonly linux: LinuxContainerResources | undefined;
}

/**
 * Reads the resources of all containers with one request for each, so it is used only if the
 * kubelet cannot use its own checkpoints.
 */
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
      // NotFound: the container was removed after it was listed.
      if (isKind(error, 'NotFound')) return undefined;
      throw error;
    });
    if (response === undefined) continue;
    const linux = response.status?.resources?.linux;
    found.push({ id, isRunning: state === 'CONTAINER_RUNNING', uid: podUid(uid), container, linux });
  }
  return found;
}

/** Moves a container to other CPUs or NUMA nodes; a value that is not given stays unchanged. */
export async function updateContainerCpuset(
  cri: Pick<CriClient, 'updateContainerResources'>,
  containerId: string,
  linux: Pick<Partial<LinuxContainerResources>, 'cpusetCpus' | 'cpusetMems'>,
  signal: AbortSignal,
): Promise<void> {
  await cri.updateContainerResources({ containerId, linux }, signal);
}
