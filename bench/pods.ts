import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PrivateRuntime } from '../test/private-runtime.ts';

export interface PodHandle {
  readonly podSandboxId: string;
  readonly containerId: string;
}

const signal = new AbortController().signal;

/**
 * `as-by-kubelets` is a pod as every kubelet requests it: with a seccomp profile for the sandbox,
 * masked /proc paths, a log, name servers, and the hosts and termination message files of each
 * container. `barest` is the smallest pod that the runtime can start.
 */
export type Dress = 'barest' | 'as-by-kubelets';

const script = 'trap "exit 0" TERM; sleep 100000 & wait';
const hidden = [
  'asound',
  'acpi',
  'interrupts',
  'kcore',
  'keys',
  'latency_stats',
  'timer_list',
  'timer_stats',
  'sched_debug',
  'scsi',
];
const readonly = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'];

function sandboxConfig({ containerd, dataDir }: PrivateRuntime, name: string, dress: Dress) {
  const profileType = dress === 'barest' ? 'Unconfined' : 'RuntimeDefault';
  const given = {
    logDirectory: join(dataDir, 'floor-logs', name),
    dnsConfig: { servers: ['10.0.0.10'], searches: ['cluster.local'], options: ['ndots:5'] },
    labels: { 'io.kubernetes.pod.name': name, 'io.kubernetes.pod.uid': name },
  };
  return {
    metadata: { name, namespace: 'bench', uid: name, attempt: 0 },
    hostname: name,
    ...(dress === 'barest' ? {} : given),
    linux: {
      cgroupParent: containerd.layout.cgroup,
      securityContext: { namespaceOptions: { pid: 'CONTAINER' }, seccomp: { profileType } },
    },
  } as const;
}

/**
 * Creates the files that a kubelet writes before it creates the container; this is work of the
 * kubelet, not of the runtime.
 */
async function containerFiles({ dataDir }: PrivateRuntime, name: string, container: string) {
  const directory = join(dataDir, 'floor-files', name, container);
  await mkdir(directory, { recursive: true });
  await mkdir(join(dataDir, 'floor-logs', name, container), { recursive: true });
  const paths = { hosts: join(directory, 'etc-hosts'), message: join(directory, 'message') };
  await Promise.all(Object.values(paths).map((path) => writeFile(path, '')));
  return paths;
}

async function containerConfig(runtime: PrivateRuntime, name: string, container: string, dress: Dress) {
  if (dress === 'barest') return { command: ['sleep', '100000'] };
  const { hosts, message } = await containerFiles(runtime, name, container);
  return {
    command: ['sh', '-c', script],
    logPath: `${container}/0.log`,
    labels: { 'io.kubernetes.pod.name': name, 'io.kubernetes.container.name': container },
    mounts: [
      { hostPath: hosts, containerPath: '/etc/hosts' },
      { hostPath: message, containerPath: '/dev/termination-log' },
    ],
    linux: {
      resources: { cpuShares: 2n, oomScoreAdj: 1_000n },
      securityContext: {
        namespaceOptions: { pid: 'CONTAINER' },
        maskedPaths: [
          ...hidden.map((each) => `/proc/${each}`),
          '/sys/firmware',
          '/sys/devices/virtual/powercap',
        ],
        readonlyPaths: readonly.map((each) => `/proc/${each}`),
      },
    },
  } as const;
}

/** Makes only the CRI calls that every kubelet needs to start a pod with one container. */
export async function startPod(
  runtime: PrivateRuntime,
  name: string,
  dress: Dress = 'as-by-kubelets',
): Promise<PodHandle> {
  const config = sandboxConfig(runtime, name, dress);
  const { podSandboxId } = await runtime.cri.runPodSandbox({ config }, signal);
  return { podSandboxId, containerId: await startContainer(runtime, podSandboxId, name, { dress }) };
}

export interface FullPodHandle {
  readonly podSandboxId: string;
  readonly containerIds: readonly string[];
}

/** Like `startPod`, but with several containers that start sequentially. */
export async function startFullPod(
  runtime: PrivateRuntime,
  name: string,
  containers: readonly string[],
  dress: Dress = 'as-by-kubelets',
): Promise<FullPodHandle> {
  const { podSandboxId } = await runtime.cri.runPodSandbox(
    { config: sandboxConfig(runtime, name, dress) },
    signal,
  );
  const containerIds: string[] = [];
  for (const container of containers)
    containerIds.push(await startContainer(runtime, podSandboxId, name, { container, dress }));
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

interface ContainerWish {
  readonly attempt?: number;
  readonly container?: string;
  readonly dress?: Dress;
}

/** Creates and starts a container; returns its ID. */
export async function startContainer(
  runtime: PrivateRuntime,
  podSandboxId: string,
  name: string,
  { attempt = 0, container = 'main', dress = 'as-by-kubelets' }: ContainerWish = {},
): Promise<string> {
  const { cri, image } = runtime;
  const config = await containerConfig(runtime, name, container, dress);
  const { containerId } = await cri.createContainer(
    {
      podSandboxId,
      sandboxConfig: sandboxConfig(runtime, name, dress),
      config: { metadata: { name: container, attempt }, image: { image }, ...config },
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
