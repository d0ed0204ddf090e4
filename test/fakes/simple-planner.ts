import type { PodSandboxConfig } from '../../src/cri/index.ts';
import type { Pod } from '../../src/pods/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import { containerAnnotations, containerLabels, sandboxLabels } from '../../src/runtime/containers/labels.ts';
import { containerLogPath, podLogDirectory } from '../../src/runtime/logs/log-paths.ts';
import { computePodActions } from '../../src/runtime/plan/compute-pod-actions.ts';
import type { PodPlanner } from '../../src/runtime/plan/pod-planner.ts';

export interface SimplePlannerOptions {
  readonly podLogsDir: string;
  /** The directory for the files of each container. */
  readonly podsDir: string;
  readonly cgroupParent?: string;
}

/**
 * A pod planner that makes the real decisions (computePodActions) and builds minimal container
 * configs.
 */
export function simplePlanner(options: SimplePlannerOptions): PodPlanner {
  const sandboxConfig = (pod: Pod, attempt: number): MessageInit<PodSandboxConfig> => ({
    metadata: { name: pod.metadata.name, namespace: pod.metadata.namespace, uid: pod.metadata.uid, attempt },
    hostname: pod.metadata.name,
    logDirectory: podLogDirectory(options.podLogsDir, pod),
    labels: sandboxLabels(pod),
    linux: { cgroupParent: options.cgroupParent ?? '/pods' },
  });
  return {
    computePodActions,
    updatedResources: () => ({}),
    overheadResources: () => ({}),
    sandboxPlan: async (pod, attempt) => ({ config: sandboxConfig(pod, attempt), runtimeHandler: '' }),
    async containerPlan({ pod, container, restartCount, image, volumeImages }) {
      const file = restartCount.toString(16).padStart(8, '0');
      const messages = `${options.podsDir}/${pod.metadata.uid}/containers/${container.name}/${file}`;
      return {
        config: {
          metadata: { name: container.name, attempt: restartCount },
          image: { image: image.ref, userSpecifiedImage: container.image ?? '' },
          command: container.command ?? [],
          args: container.args ?? [],
          labels: containerLabels(pod, container),
          annotations: containerAnnotations(pod, container, restartCount),
          logPath: containerLogPath(container, restartCount),
          mounts: [
            { containerPath: '/dev/termination-log', hostPath: messages },
            ...(container.volumeMounts ?? []).flatMap(({ name, mountPath: containerPath }) => {
              const found = volumeImages?.get(name);
              if (found === undefined) return [];
              return [{ containerPath, readonly: true, image: { image: found.image } }];
            }),
          ],
        },
        files: [{ path: messages, text: '', mode: 0o666 }],
      };
    },
  };
}
