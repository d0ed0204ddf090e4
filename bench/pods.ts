import type { PrivateRuntime } from '../test/private-runtime.ts';

export interface PodHandle {
  readonly podSandboxId: string;
  readonly containerId: string;
}

const signal = new AbortController().signal;

/** What a kubelet cannot do without to have one container running, and nothing more. */
export async function startPod({ cri, image, containerd }: PrivateRuntime, name: string): Promise<PodHandle> {
  const config = {
    metadata: { name, namespace: 'bench', uid: name, attempt: 0 },
    hostname: name,
    linux: {
      cgroupParent: containerd.layout.cgroup,
      securityContext: { namespaceOptions: { pid: 'CONTAINER' } },
    },
  } as const;
  const { podSandboxId } = await cri.runPodSandbox({ config }, signal);
  const { containerId } = await cri.createContainer(
    {
      podSandboxId,
      sandboxConfig: config,
      config: { metadata: { name: 'main', attempt: 0 }, image: { image }, command: ['sleep', '100000'] },
    },
    signal,
  );
  await cri.startContainer({ containerId }, signal);
  return { podSandboxId, containerId };
}

export async function removePod(
  { cri }: PrivateRuntime,
  { podSandboxId, containerId }: PodHandle,
): Promise<void> {
  await cri.stopContainer({ containerId, timeout: 0n }, signal);
  await cri.stopPodSandbox({ podSandboxId }, signal);
  await cri.removeContainer({ containerId }, signal);
  await cri.removePodSandbox({ podSandboxId }, signal);
}
