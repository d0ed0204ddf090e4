import { isIP } from 'node:net';
import type {
  Container,
  ContainerState,
  ContainerStatus,
  CriClient,
  PodSandbox,
  PodSandboxStatus,
} from '../../cri/index.ts';
import { allOrAbort, isKind, LruMap } from '../../lib/index.ts';
import {
  type ObservedContainer,
  type ObservedContainerState,
  type ObservedPod,
  type ObservedSandbox,
  type PodUid,
  podUid,
  type RuntimeContainer,
  type RuntimeItem,
  type RuntimePod,
} from '../../pods/index.ts';
import { labels as ours, readContainerAnnotations, readOwner } from '../containers/labels.ts';
import type { RuntimeFiles } from '../containers/runtime-files.ts';
import { terminationMessage } from '../containers/termination-message.ts';

export interface ObserverDeps {
  readonly cri: Pick<CriClient, 'listPodSandbox' | 'listContainers' | 'podSandboxStatus' | 'containerStatus'>;
  readonly files: RuntimeFiles;
  /** The scheme of container ids in statuses, for example containerd. */
  readonly runtimeName: string;
  readonly podLogsDir: string;
}

/** Maximum number of cached sandbox statuses; a node has fewer pods. */
const maxCachedSandboxes = 1_024;
/**
 * Maximum number of cached termination messages, for recently exited containers, which are observed
 * repeatedly.
 */
const maxCachedMessages = 256;

/**
 * Observes pods in the runtime; every result reflects the runtime's current state. Only two things
 * are cached: the status of a sandbox, whose addresses do not change while the runtime lists it in
 * the same state, and the termination message of an exited container.
 */
export class RuntimeObserver {
  readonly #deps: ObserverDeps;
  readonly #cachedSandboxes = new LruMap<string, ObservedSandbox>({ capacity: maxCachedSandboxes });
  /** Termination messages of exited containers, by container id; they do not change. */
  readonly #terminationMessages = new LruMap<string, CachedMessage>({ capacity: maxCachedMessages });

  constructor(deps: ObserverDeps) {
    this.#deps = deps;
  }

  /** Lists all pods with a sandbox or container in the runtime, sorted by UID. */
  async listPods(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    return await this.#list({}, signal);
  }

  /** Lists one pod; undefined when the runtime has no sandbox or container of it. */
  async listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined> {
    const [pod] = await this.#list({ [ours.podUid]: uid }, signal);
    return pod;
  }

  /** Observes a listed pod in detail; omits sandboxes and containers removed since the listing. */
  async observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod> {
    const look = (inner: AbortSignal) =>
      Promise.all([
        Promise.all(pod.sandboxes.map((sandbox) => this.#listed(sandbox, inner))),
        Promise.all(pod.containers.map((container) => this.#container(container, inner))),
      ]);
    const [sandboxes, containers] = await allOrAbort(look, signal);
    const found = sandboxes.filter((sandbox) => sandbox !== undefined).sort(newestSandboxFirst);
    const ready = found.find(({ state }) => state === 'ready');
    return {
      uid: pod.uid,
      name: pod.name,
      namespace: pod.namespace,
      ips: ready?.network === 'pod' ? ready.ips : [],
      sandboxes: found,
      containers: newestInstancesFirst(
        containers.filter((container) => container !== undefined),
        ({ restartCount }) => restartCount,
      ),
    };
  }

  async #list(
    labelSelector: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<readonly RuntimePod[]> {
    const { cri } = this.#deps;
    const look = (inner: AbortSignal) =>
      Promise.all([
        cri.listPodSandbox({ filter: { labelSelector } }, inner),
        cri.listContainers({ filter: { labelSelector } }, inner),
      ]);
    const [{ items }, { containers }] = await allOrAbort(look, signal);
    return grouped(items, containers);
  }

  /** Reads the current status of a sandbox; undefined when the runtime returns none. */
  async sandbox(podSandboxId: string, signal: AbortSignal): Promise<ObservedSandbox | undefined> {
    this.forget(podSandboxId);
    const { status } = await this.#deps.cri.podSandboxStatus({ podSandboxId }, signal);
    if (status === undefined) return undefined;
    const seen = observedSandbox(status);
    const isComplete = seen.state === 'not-ready' || seen.network === 'node' || seen.ips.length > 0;
    if (isComplete) this.#cachedSandboxes.set(podSandboxId, seen);
    return seen;
  }

  /**
   * Drops the cached status of a sandbox; called before it is stopped, because stopping changes the
   * status.
   */
  forget(podSandboxId: string): void {
    this.#cachedSandboxes.delete(podSandboxId);
  }

  async #listed({ id, state }: RuntimeItem, signal: AbortSignal): Promise<ObservedSandbox | undefined> {
    const known = this.#cachedSandboxes.get(id);
    const isAsListed = known?.state === (state === 'running' ? 'ready' : 'not-ready');
    return isAsListed ? known : await unlessNotFound(this.sandbox(id, signal));
  }

  async #container(listed: RuntimeContainer, signal: AbortSignal): Promise<ObservedContainer | undefined> {
    const { cri, runtimeName } = this.#deps;
    const answer = await unlessNotFound(cri.containerStatus({ containerId: listed.id }, signal));
    const status = answer?.status;
    if (status === undefined) return undefined;
    const exited = status.state === 'CONTAINER_EXITED';
    const message = exited ? await this.#messageOf(status) : status.message;
    return observedContainer(status, listed, runtimeName, message);
  }

  /**
   * Returns the termination message of a container; it is read again when the runtime's status
   * changes.
   */
  async #messageOf(status: ContainerStatus): Promise<string> {
    const { id, reason, message, exitCode } = status;
    const end = [status.finishedAt, exitCode, reason, message].join();
    const known = this.#terminationMessages.get(id);
    if (known?.end === end) return known.text;
    const { text, state } = await terminationMessage(status, this.#deps);
    if (state === 'read') this.#terminationMessages.set(id, { end, text });
    return text;
  }
}

interface CachedMessage {
  /**
   * Exit of the container as reported by the runtime; a changed exit invalidates the cached
   * message.
   */
  readonly end: string;
  readonly text: string;
}

async function unlessNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isKind(error, 'NotFound')) return undefined;
    throw error;
  }
}

/**
 * Groups sandboxes and containers by pod. Those without pod labels were created by other programs
 * and are ignored.
 */
function grouped(sandboxes: readonly PodSandbox[], containers: readonly Container[]): readonly RuntimePod[] {
  const uids = new Set([...sandboxes, ...containers].map(({ labels }) => labels[ours.podUid] ?? ''));
  uids.delete('');
  const sandboxesOf = Map.groupBy(sandboxes, ({ labels }) => labels[ours.podUid]);
  const containersOf = Map.groupBy(containers, ({ labels }) => labels[ours.podUid]);
  return [...uids]
    .sort()
    .map((uid) => runtimePod(uid, sandboxesOf.get(uid) ?? [], containersOf.get(uid) ?? []));
}

function runtimePod(
  uid: string,
  sandboxes: readonly PodSandbox[],
  containers: readonly Container[],
): RuntimePod {
  const owner = readOwner([...sandboxes, ...containers][0]?.labels ?? {});
  const attempts = new Map(containers.map(({ id, metadata }) => [id, metadata?.attempt ?? 0]));
  return {
    uid: podUid(uid),
    name: owner?.podName ?? '',
    namespace: owner?.namespace ?? '',
    sandboxes: [...sandboxes].sort(newestListedSandboxFirst).map(listedSandbox),
    containers: newestInstancesFirst(
      containers.map(listedContainer).filter(({ name }) => name !== ''),
      ({ id }) => attempts.get(id) ?? 0,
    ),
  };
}

function listedSandbox({ id, state, createdAt }: PodSandbox): RuntimeItem {
  return { id, state: state === 'SANDBOX_READY' ? 'running' : 'exited', createdAtNs: createdAt };
}

function listedContainer(container: Container): RuntimeContainer {
  return {
    id: container.id,
    name: containerName(container),
    sandboxId: container.podSandboxId,
    state: containerState(container.state),
    createdAtNs: container.createdAt,
    image: container.image?.image ?? '',
  };
}

function containerName({ labels, metadata }: Pick<Container, 'labels' | 'metadata'>): string {
  return labels[ours.containerName] ?? metadata?.name ?? '';
}

const containerStates: Readonly<Record<ContainerState, ObservedContainerState>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
  UNRECOGNIZED: 'unknown',
};

function containerState(state: ContainerState): ObservedContainerState {
  return containerStates[state];
}

export function observedSandbox(status: PodSandboxStatus): ObservedSandbox {
  return {
    id: status.id,
    attempt: status.metadata?.attempt ?? 0,
    state: status.state === 'SANDBOX_READY' ? 'ready' : 'not-ready',
    createdAtNs: status.createdAt,
    network: status.linux?.namespaces?.options?.network === 'NODE' ? 'node' : 'pod',
    ips: ipsOf(status),
    unaddressed: status.network?.ip === '',
    runtimeHandler: status.runtimeHandler,
  };
}

/** Returns all addresses of a sandbox, or none when one address is invalid. */
export function ipsOf({ network }: PodSandboxStatus): readonly string[] {
  if (network === undefined || network.ip === '') return [];
  const ips = [network.ip, ...network.additionalIps.map(({ ip }) => ip)];
  return ips.every((ip) => isIP(ip) !== 0) ? ips : [];
}

function observedContainer(
  status: ContainerStatus,
  listed: RuntimeContainer,
  runtimeName: string,
  message: string,
): ObservedContainer {
  const exited = status.state === 'CONTAINER_EXITED';
  const ofSpec = readContainerAnnotations(status.annotations);
  return {
    id: status.id,
    runtimeName,
    name: containerName(status),
    sandboxId: listed.sandboxId,
    state: containerState(status.state),
    createdAtNs: status.createdAt,
    startedAtNs: status.startedAt,
    finishedAtNs: exited ? status.finishedAt : 0n,
    exitCode: exited ? status.exitCode : 0,
    reason: status.reason,
    message,
    image: status.image?.image ?? listed.image,
    imageRef: status.imageRef,
    hash: ofSpec.hash,
    restartCount: ofSpec.restartCount,
    logPath: status.logPath,
    annotations: status.annotations,
    labels: status.labels,
    resources: resourcesOf(status),
    user: userOf(status),
  };
}

function resourcesOf({ resources }: ContainerStatus): ObservedContainer['resources'] {
  const linux = resources?.linux;
  if (linux === undefined) return undefined;
  const given = (value: bigint) => (value === 0n ? undefined : Number(value));
  return {
    cpuShares: given(linux.cpuShares),
    cpuQuota: given(linux.cpuQuota),
    cpuPeriod: given(linux.cpuPeriod),
    memoryLimitBytes: given(linux.memoryLimitInBytes),
  };
}

function userOf({ user }: ContainerStatus): ObservedContainer['user'] {
  if (user?.linux === undefined) return undefined;
  const { uid, gid, supplementalGroups } = user.linux;
  return { uid: Number(uid), gid: Number(gid), supplementalGroups: supplementalGroups.map(Number) };
}

interface Created {
  readonly id: string;
  readonly createdAtNs: bigint;
}

/**
 * Sorts sandboxes or containers by creation time, newest first, and by id when the times are equal,
 * so that the order is deterministic.
 */
function newestFirst(a: Created, b: Created): number {
  return compare(b.createdAtNs, a.createdAtNs) || compare(a.id, b.id);
}

/**
 * Orders instances of one container by attempt, because the clock may have been set back between
 * them.
 */
function newestInstancesFirst<T extends Created & { readonly name: string }>(
  all: readonly T[],
  attemptOf: (one: T) => number,
): readonly T[] {
  const byTime = all.toSorted(newestFirst);
  const instances = Map.groupBy(
    byTime.toSorted((a, b) => attemptOf(b) - attemptOf(a)),
    ({ name }) => name,
  );
  return byTime.flatMap(({ name }) => instances.get(name)?.shift() ?? []);
}

function newestSandboxFirst(a: ObservedSandbox, b: ObservedSandbox): number {
  return b.attempt - a.attempt || newestFirst(a, b);
}

function newestListedSandboxFirst(a: PodSandbox, b: PodSandbox): number {
  const byAttempt = (b.metadata?.attempt ?? 0) - (a.metadata?.attempt ?? 0);
  return byAttempt || compare(b.createdAt, a.createdAt) || compare(a.id, b.id);
}

function compare<T extends bigint | string>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
