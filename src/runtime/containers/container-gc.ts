import { posix } from 'node:path';
import type { CriClient } from '../../cri/index.ts';
import {
  allOrAbort,
  type Clock,
  describeError,
  isKind,
  KubelingError,
  type Logger,
} from '../../lib/index.ts';
import type { Pod, PodUid, RuntimeContainer, RuntimePod } from '../../pods/index.ts';
import type { PodKiller } from '../kill/pod-killer.ts';
import { containerIdOfLogLink, podLogDirectory, podUidOfLogDirectory } from '../logs/log-paths.ts';
import type { RuntimeObserver } from '../sync/runtime-observer.ts';
import type { ContainerRemover } from './container-deletor.ts';
import { restorePod } from './labels.ts';
import type { RuntimeFiles } from './runtime-files.ts';

export interface GcPolicy {
  /** The minimum age of a dead container before it is removed. */
  readonly minAgeMs: number;
  /** The number of dead instances to keep per container; negative keeps all. */
  readonly maxPerContainer: number;
  /** The number of dead containers to keep per node; negative keeps all. */
  readonly maxContainers: number;
}

/**
 * The state of pods as the pod workers know it. A pod counts as removed only after all pod sources
 * are ready.
 */
export interface GcPods {
  /** Whether the pod's logs and containers can be removed. */
  shouldPodContentBeRemoved(uid: PodUid): boolean;
  /** Whether the pod is terminated, so that its dead containers are kept for their logs only. */
  shouldPodRuntimeBeRemoved(uid: PodUid): boolean;
  /** Remaining grace period of a terminating pod in seconds; undefined for other pods. */
  secondsLeft(uid: PodUid): number | undefined;
}

export interface ContainerGcDeps {
  readonly cri: Pick<CriClient, 'stopPodSandbox' | 'removePodSandbox' | 'containerStatus'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RuntimeFiles;
  readonly observer: RuntimeObserver;
  readonly killer: PodKiller;
  readonly remover: ContainerRemover;
  readonly pods: GcPods;
  readonly policy: GcPolicy;
  readonly podLogsDir: string;
  readonly logLinksDir: string;
}

/**
 * What to collect: garbage of deleted pods only, or, under disk pressure, of terminated pods too.
 */
export type GcScope = 'deleted-pods' | 'terminated-pods-too';

interface DeadContainer extends RuntimeContainer {
  readonly pod: RuntimePod;
}

/**
 * Removes dead containers, unused sandboxes, and logs of deleted pods. Callers must not run two
 * collections concurrently.
 */
export class ContainerGc {
  readonly #deps: ContainerGcDeps;

  constructor(deps: ContainerGcDeps) {
    this.#deps = deps;
  }

  /** Tries all removals, then throws CONTAINER_GC with all failures. */
  async collect(scope: GcScope, signal: AbortSignal): Promise<void> {
    const failures: string[] = [];
    const steps = [
      () => this.#collectContainers(scope, failures, signal),
      () => this.#collectSandboxes(scope, failures, signal),
      () => this.#collectLogs(failures),
      () => this.#collectLinks(failures, signal),
    ];
    for (const step of steps) await this.#attempt(failures, 'collect garbage', step, signal);
    if (failures.length === 0) return;
    throw new KubelingError('CONTAINER_GC', `Cannot remove all garbage: ${failures.join('; ')}`);
  }

  /**
   * Removes containers, sandboxes and logs of one stopped pod without waiting for the next
   * collection. The caller guarantees that the pod is no longer desired and that no worker syncs
   * it.
   */
  async collectPod(pod: Pod, signal: AbortSignal): Promise<void> {
    const { observer, remover, cri, files, podLogsDir } = this.#deps;
    const { uid } = pod.metadata;
    const found = await observer.listPod(uid, signal);
    const dead = found?.containers.filter(({ state }) => state === 'exited' || state === 'created') ?? [];
    const remove = (inner: AbortSignal) =>
      Promise.all(dead.map(({ id }) => remover.remove(id, 'with-logs', inner)));
    await allOrAbort(remove, signal);
    const gone = new Set(dead.map(({ id }) => id));
    const used = new Set(found?.containers.filter(({ id }) => !gone.has(id)).map((each) => each.sandboxId));
    const idle = found?.sandboxes.filter(({ id, state }) => state !== 'running' && !used.has(id)) ?? [];
    // The sandboxes were stopped before, so they are removed directly. If the runtime rejects this
    // because it has not released the network of a sandbox, the sandbox is stopped again first.
    for (const { id: podSandboxId } of idle)
      await cri
        .removePodSandbox({ podSandboxId }, signal)
        .catch(() => this.#removeSandbox(podSandboxId, signal));
    await files.remove(podLogDirectory(podLogsDir, pod));
  }

  async #collectContainers(scope: GcScope, failures: string[], signal: AbortSignal): Promise<void> {
    const pods = await this.#deps.observer.listPods(signal);
    for (const dead of this.#toRemove(pods, scope)) {
      await this.#attempt(failures, `remove container ${dead.id}`, () => this.#remove(dead, signal), signal);
    }
  }

  /**
   * Selects containers to remove from groups sorted newest first; the result is sorted oldest
   * first.
   */
  #toRemove(pods: readonly RuntimePod[], scope: GcScope): readonly DeadContainer[] {
    const { maxPerContainer, maxContainers } = this.#deps.policy;
    const gone = pods.filter(({ uid }) => this.#isDeleted(uid, scope));
    const all = gone.flatMap((pod) => this.#dead(pod, 'gone'));
    const kept = pods
      .filter((pod) => !gone.includes(pod))
      .flatMap((pod) => [...Map.groupBy(this.#dead(pod, 'known'), ({ name }) => name).values()]);
    const perContainer = cut(kept, maxPerContainer);
    const onNode = cutOnNode(perContainer.kept, maxContainers);
    return [...all, ...perContainer.removed, ...onNode].sort(oldestFirst);
  }

  #isDeleted(uid: PodUid, scope: GcScope): boolean {
    const { pods } = this.#deps;
    if (pods.shouldPodContentBeRemoved(uid)) return true;
    return scope === 'terminated-pods-too' && pods.shouldPodRuntimeBeRemoved(uid);
  }

  /**
   * Returns dead containers sorted newest first. A created container is skipped while its pod
   * exists, because it may be about to start.
   */
  #dead(pod: RuntimePod, standing: 'gone' | 'known'): readonly DeadContainer[] {
    const newestNs = BigInt(Math.trunc(this.#deps.clock.now() - this.#deps.policy.minAgeMs)) * 1_000_000n;
    return pod.containers
      .filter(({ state }) => state !== 'running' && (state !== 'created' || standing === 'gone'))
      .filter(({ createdAtNs }) => this.#deps.policy.minAgeMs <= 0 || createdAtNs <= newestNs)
      .map((container) => ({ ...container, pod }));
  }

  async #remove({ id, name, state, pod }: DeadContainer, signal: AbortSignal): Promise<void> {
    const { killer, observer, remover } = this.#deps;
    if (state === 'unknown') {
      const alone = { ...pod, containers: pod.containers.filter((container) => container.id === id) };
      const observed = await observer.observe(alone, signal);
      const message = 'Container is in unknown state, try killing it before removal';
      if (observed.containers.length > 0) {
        const graceSeconds = this.#deps.pods.secondsLeft(pod.uid);
        const kill = { id, name, message, reason: 'Unknown', graceSeconds } as const;
        const { failure } = await killer.killContainer(restorePod(observed), kill, signal);
        if (failure !== undefined) throw new KubelingError('POD_KILL', failure.message);
      }
    }
    await remover.remove(id, 'with-logs', signal);
  }

  async #collectSandboxes(scope: GcScope, failures: string[], signal: AbortSignal): Promise<void> {
    for (const pod of await this.#deps.observer.listPods(signal)) {
      const used = new Set(pod.containers.map(({ sandboxId }) => sandboxId));
      const candidates = this.#isDeleted(pod.uid, scope) ? pod.sandboxes : pod.sandboxes.slice(1);
      const idle = candidates.filter(({ id, state }) => state !== 'running' && !used.has(id));
      for (const { id } of idle.toReversed()) {
        await this.#attempt(failures, `remove sandbox ${id}`, () => this.#removeSandbox(id, signal), signal);
      }
    }
  }

  /** Stops the sandbox again before its removal, to be sure that its network is released. */
  async #removeSandbox(podSandboxId: string, signal: AbortSignal): Promise<void> {
    const { cri } = this.#deps;
    try {
      await cri.stopPodSandbox({ podSandboxId }, signal);
      await cri.removePodSandbox({ podSandboxId }, signal);
    } catch (error) {
      if (!isKind(error, 'NotFound')) throw error;
    }
  }

  async #collectLogs(failures: string[]): Promise<void> {
    const { files, podLogsDir, pods } = this.#deps;
    for (const name of await files.names(podLogsDir)) {
      const uid = podUidOfLogDirectory(name);
      if (uid === undefined || !pods.shouldPodContentBeRemoved(uid)) continue;
      const path = posix.join(podLogsDir, name);
      await this.#attempt(failures, `remove log directory ${path}`, () => files.remove(path));
    }
  }

  async #collectLinks(failures: string[], signal: AbortSignal): Promise<void> {
    const { files, logLinksDir } = this.#deps;
    for (const name of await files.names(logLinksDir)) {
      const path = posix.join(logLinksDir, name);
      if (!(await this.#isDangling(path, containerIdOfLogLink(name), signal))) continue;
      await this.#attempt(failures, `remove log link ${path}`, () => files.remove(path), signal);
    }
  }

  /**
   * The name of a long link is truncated and then contains no container ID; such a link is removed
   * when the directory of its target is missing.
   */
  async #isDangling(path: string, id: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { files } = this.#deps;
    if (await files.exists(path)) return false;
    if (id !== undefined) return await this.#isDead(id, signal);
    const target = await files.readLink(path);
    return target !== undefined && !(await files.exists(posix.dirname(target)));
  }

  /**
   * Only links of dead containers are removed, because the link of a running container has no
   * target for a short time during log rotation.
   */
  async #isDead(containerId: string, signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#deps.cri.containerStatus({ containerId }, signal);
      return status?.state === 'CONTAINER_EXITED';
    } catch (error) {
      if (isKind(error, 'NotFound')) return true;
      throw error;
    }
  }

  async #attempt(
    failures: string[],
    what: string,
    act: () => Promise<void>,
    signal?: AbortSignal,
  ): Promise<void> {
    try {
      await act();
    } catch (error) {
      signal?.throwIfAborted();
      this.#deps.logger.error(`Failed to ${what}`, error);
      failures.push(`cannot ${what}: ${describeError(error)}`);
    }
  }
}

interface Cut {
  readonly kept: readonly (readonly DeadContainer[])[];
  readonly removed: readonly DeadContainer[];
}

/** Keeps the given number of newest containers in each group. */
function cut(groups: readonly (readonly DeadContainer[])[], keep: number): Cut {
  if (keep < 0) return { kept: groups, removed: [] };
  return {
    kept: groups.map((group) => group.slice(0, keep)),
    removed: groups.flatMap((group) => group.slice(keep)),
  };
}

/**
 * Removes evenly from all groups of containers, leaving at least one in each; then removes the
 * oldest of the remaining containers.
 */
function cutOnNode(groups: readonly (readonly DeadContainer[])[], keep: number): readonly DeadContainer[] {
  const filled = groups.filter(({ length }) => length > 0);
  const total = filled.flat().length;
  if (keep < 0 || total <= keep) return [];
  const even = cut(filled, Math.max(1, Math.floor(keep / filled.length)));
  const left = even.kept.flat().sort(oldestFirst);
  return [...even.removed, ...left.slice(0, Math.max(0, left.length - keep))];
}

function oldestFirst(a: RuntimeContainer, b: RuntimeContainer): number {
  if (a.createdAtNs !== b.createdAtNs) return a.createdAtNs < b.createdAtNs ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
