import type { PrivateRuntime } from '../test/private-runtime.ts';

export interface PodHandle {
  readonly podSandboxId: string;
  readonly containerId: string;
}

const signal = new AbortController().signal;

/** Every kubelet has sandboxes filtered, which the barest start leaves out; the runtime takes its time to make the filter. */
export type Filter = 'RuntimeDefault' | 'Unconfined';

function sandboxConfig({ containerd }: PrivateRuntime, name: string, profileType: Filter) {
  return {
    metadata: { name, namespace: 'bench', uid: name, attempt: 0 },
    hostname: name,
    linux: {
      cgroupParent: containerd.layout.cgroup,
      securityContext: { namespaceOptions: { pid: 'CONTAINER' }, seccomp: { profileType } },
    },
  } as const;
}

/** What a kubelet cannot do without to have one container running, and nothing more. */
export async function startPod(
  runtime: PrivateRuntime,
  name: string,
  filter: Filter = 'Unconfined',
): Promise<PodHandle> {
  const config = sandboxConfig(runtime, name, filter);
  const { podSandboxId } = await runtime.cri.runPodSandbox({ config }, signal);
  return { podSandboxId, containerId: await startContainer(runtime, podSandboxId, name, 0) };
}

export interface FullPodHandle {
  readonly podSandboxId: string;
  readonly containerIds: readonly string[];
}

/** The same for several containers, which start one after the other. */
export async function startFullPod(
  runtime: PrivateRuntime,
  name: string,
  containers: readonly string[],
): Promise<FullPodHandle> {
  const { podSandboxId } = await runtime.cri.runPodSandbox(
    { config: sandboxConfig(runtime, name, 'Unconfined') },
    signal,
  );
  const containerIds: string[] = [];
  for (const container of containers)
    containerIds.push(await startContainer(runtime, podSandboxId, name, 0, container));
  return { podSandboxId, containerIds };
}

export async function removeFullPod(
  { cri }: PrivateRuntime,
  { podSandboxId, containerIds }: FullPodHandle,
): Promise<void> {
  await Promise.all(
    containerIds.map(async (containerId) => {
      await cri.stopContainer({ containerId, timeout: 0n }, signal);
      await cri.removeContainer({ containerId }, signal);
    }),
  );
  await cri.stopPodSandbox({ podSandboxId }, signal);
  await cri.removePodSandbox({ podSandboxId }, signal);
}

/** The next attempt of the pod's container; answers its id. */
export async function startContainer(
  runtime: PrivateRuntime,
  podSandboxId: string,
  name: string,
  attempt: number,
  container = 'main',
): Promise<string> {
  const { cri, image } = runtime;
  const { containerId } = await cri.createContainer(
    {
      podSandboxId,
      sandboxConfig: sandboxConfig(runtime, name, 'Unconfined'),
      config: { metadata: { name: container, attempt }, image: { image }, command: ['sleep', '100000'] },
    },
    signal,
  );
  await cri.startContainer({ containerId }, signal);
  return containerId;
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
