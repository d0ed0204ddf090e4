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
  /** Of the pod's runtime class; empty for the runtime's own choice. */
  readonly runtimeHandler: string;
}

export interface ContainerRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly restartCount: number;
  readonly image: ImageFacts;
  /** Of the volumes whose files come from images, those that the container mounts. */
  readonly volumeImages?: ReadonlyMap<string, MountableImage> | undefined;
  readonly podIps: readonly string[];
  /** The container whose processes an ephemeral container is to see. */
  readonly targetId: string | undefined;
}

/** A file a container must find when it starts. */
export interface PlannedFile {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

export interface ContainerPlan {
  readonly config: MessageInit<ContainerConfig>;
  readonly files: readonly PlannedFile[];
}

/** Everything that is decided about a pod before the runtime is told. Throws what the pod's status should show. */
export interface PodPlanner {
  computePodActions(pod: Pod, observed: ObservedPod, context: PlanContext): PodActions;
  sandboxPlan(pod: Pod, attempt: number, signal: AbortSignal): Promise<SandboxPlan>;
  containerPlan(request: ContainerRequest, signal: AbortSignal): Promise<ContainerPlan>;
  /** What a container that runs is to have from now on. */
  updatedResources(
    pod: Pod,
    container: Container,
    lifted: RemovedLimits,
  ): MessageInit<LinuxContainerResources>;
  /** What the pod's runtime class costs by itself. */
  overheadResources(pod: Pod): MessageInit<LinuxContainerResources>;
}
