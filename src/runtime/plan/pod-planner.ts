import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';
import type { ObservedPod, Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { RemovedLimits } from '../containers/linux-resources.ts';
import type { MountableImage } from '../containers/mounts.ts';
import type { ImageFacts } from '../images/image-manager.ts';
import type { PlanContext, PodActions } from './pod-actions.ts';

export interface SandboxPlan {
  readonly config: MessageInit<PodSandboxConfig>;
  /** Runtime handler of the pod's RuntimeClass; empty for the runtime's default handler. */
  readonly runtimeHandler: string;
}

export interface ContainerRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly restartCount: number;
  readonly image: ImageFacts;
  /** Images of the image volumes that the container mounts, keyed by volume name. */
  readonly volumeImages?: ReadonlyMap<string, MountableImage> | undefined;
  readonly podIps: readonly string[];
  /** Id of the container whose process namespace an ephemeral container joins. */
  readonly targetId: string | undefined;
}

/** A file that is written before the container starts. */
export interface PlannedFile {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

export interface ContainerPlan {
  readonly config: MessageInit<ContainerConfig>;
  readonly files: readonly PlannedFile[];
}

/**
 * Computes the parts of sandbox and container configurations that do not need the runtime. Throws
 * errors whose messages are set in the pod's status.
 */
export interface PodPlanner {
  computePodActions(pod: Pod, observed: ObservedPod, context: PlanContext): PodActions;
  sandboxPlan(pod: Pod, attempt: number, signal: AbortSignal): Promise<SandboxPlan>;
  containerPlan(request: ContainerRequest, signal: AbortSignal): Promise<ContainerPlan>;
  /** Resources of a container for the CRI call UpdateContainerResources. */
  updatedResources(
    pod: Pod,
    container: Container,
    lifted: RemovedLimits,
  ): MessageInit<LinuxContainerResources>;
  /** Overhead resources of the pod's RuntimeClass. */
  overheadResources(pod: Pod): MessageInit<LinuxContainerResources>;
}
