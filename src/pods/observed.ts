import type { PodUid } from './pod.ts';

/** What the runtime last said of one pod: the truth about what runs. Made by the runtime room, kept by the pod cache. */
export interface ObservedPod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** Of the newest ready sandbox; empty on the host network. */
  readonly ips: readonly string[];
  /** Newest first: by attempt, then time of creation, then id. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** Newest first, all instances of all containers: init, regular and ephemeral ones. */
  readonly containers: readonly ObservedContainer[];
}

export interface ObservedSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly state: 'ready' | 'not-ready';
  readonly createdAtNs: bigint;
  readonly network: 'pod' | 'node';
  /** Empty for none, and when what the runtime says is no address. */
  readonly ips: readonly string[];
  /** The runtime says of its network that it gave no address: it can reach nobody, and nobody it. */
  readonly unaddressed?: boolean | undefined;
  readonly runtimeHandler: string;
}

export type ObservedContainerState = 'created' | 'running' | 'exited' | 'unknown';

/** What the runtime has lost track of may well run. */
export function mayRun({ state }: { readonly state: ObservedContainerState }): boolean {
  return state === 'running' || state === 'unknown';
}

export interface ObservedContainer {
  /** The runtime's own id, without the scheme. */
  readonly id: string;
  /** The scheme of the id in statuses, such as containerd. */
  readonly runtimeName: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly state: ObservedContainerState;
  readonly createdAtNs: bigint;
  /** Zero for not yet. */
  readonly startedAtNs: bigint;
  readonly finishedAtNs: bigint;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** As the pod asked for it. */
  readonly image: string;
  /** The digest it ran from. */
  readonly imageRef: string;
  /** Of the spec it was made from; see the spec hash. Empty when the annotation is missing. */
  readonly hash: string;
  readonly restartCount: number;
  readonly logPath: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** What it was last given, as far as the runtime tells. */
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

/** A pod as a listing shows it: cheap, without details. */
export interface RuntimePod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly RuntimeItem[];
  readonly containers: readonly RuntimeContainer[];
}

export interface RuntimeItem {
  readonly id: string;
  /** A sandbox that is ready counts as running, one that is not as exited. */
  readonly state: ObservedContainerState;
  readonly createdAtNs: bigint;
}

export interface RuntimeContainer extends RuntimeItem {
  readonly name: string;
  readonly sandboxId: string;
  readonly image: string;
}
