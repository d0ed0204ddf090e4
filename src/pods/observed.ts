import type { Pod, PodUid } from './pod.ts';

/**
 * The state of a pod as last read from the runtime. Created by the runtime package, stored in the
 * pod cache.
 */
export interface ObservedPod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** The IP addresses of the newest ready sandbox; empty on the host network. */
  readonly ips: readonly string[];
  /** The sandboxes, newest first: by attempt, then creation time, then ID. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** The instances of all init, regular and ephemeral containers, newest first. */
  readonly containers: readonly ObservedContainer[];
}

export interface ObservedSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly state: 'ready' | 'not-ready';
  readonly createdAtNs: bigint;
  readonly network: 'pod' | 'node';
  /**
   * The IP addresses of the sandbox; empty if it has none or if the runtime reports no valid
   * address.
   */
  readonly ips: readonly string[];
  /** Whether the runtime reports a network without an address, so that the pod is unreachable. */
  readonly unaddressed?: boolean | undefined;
  readonly runtimeHandler: string;
}

export type ObservedContainerState = 'created' | 'running' | 'exited' | 'unknown';

/** A container in an unknown state may be running. */
export function mayRun({ state }: { readonly state: ObservedContainerState }): boolean {
  return state === 'running' || state === 'unknown';
}

export interface ObservedContainer {
  /** The container ID of the runtime without the scheme. */
  readonly id: string;
  /** The scheme of the container ID in statuses, such as containerd. */
  readonly runtimeName: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly state: ObservedContainerState;
  readonly createdAtNs: bigint;
  /** The time at which the container was started; zero before that. */
  readonly startedAtNs: bigint;
  readonly finishedAtNs: bigint;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** The image in the pod spec. */
  readonly image: string;
  /** The digest of the image that the container runs. */
  readonly imageRef: string;
  /**
   * The hash of the container spec from which the container was created; empty when the annotation
   * is missing.
   */
  readonly hash: string;
  readonly restartCount: number;
  readonly logPath: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** The current resources of the container, as far as the runtime reports them. */
  readonly resources: ObservedResources | undefined;
  readonly user: ObservedUser | undefined;
}

export interface ObservedResources {
  readonly cpuShares: number | undefined;
  readonly cpuQuota: number | undefined;
  readonly cpuPeriod: number | undefined;
  readonly memoryLimitBytes: number | undefined;
}

export interface ObservedUser {
  readonly uid: number;
  readonly gid: number;
  readonly supplementalGroups: readonly number[];
}

/** A pod from a list call of the runtime, without the details that need further calls. */
export interface RuntimePod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly RuntimeItem[];
  readonly containers: readonly RuntimeContainer[];
}

export interface RuntimeItem {
  readonly id: string;
  /** The container state of a sandbox: a ready sandbox counts as running, any other as exited. */
  readonly state: ObservedContainerState;
  readonly createdAtNs: bigint;
}

export interface RuntimeContainer extends RuntimeItem {
  readonly name: string;
  readonly sandboxId: string;
  readonly image: string;
}

/**
 * Whether all containers of the pod have been started, so that no container or volume is still to
 * be created. An ephemeral container that has not started may need additional volumes.
 */
export function allContainersRun(
  { spec }: Pick<Pod, 'spec'>,
  { sandboxes, containers }: Pick<ObservedPod, 'sandboxes' | 'containers'>,
): boolean {
  const running = new Set(containers.flatMap(({ name, state }) => (state === 'running' ? [name] : [])));
  const begun = new Set(containers.map(({ name }) => name));
  return (
    sandboxes.some(({ state }) => state === 'ready') &&
    spec.containers.every(({ name }) => running.has(name)) &&
    (spec.ephemeralContainers ?? []).every(({ name }) => begun.has(name))
  );
}
