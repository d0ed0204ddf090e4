import type { CriClient } from '../../cri/index.ts';
import type { Container, LifecycleHandler } from '../../kinds/index.ts';
import { type Clock, describeError, isKind, type Logger, LruMap } from '../../lib/index.ts';
import {
  containerFieldPath,
  describePod,
  ephemeralContainersOf,
  findNamed,
  initContainersOf,
  mayRun,
  type ObservedContainerState,
  type Pod,
  type PodEvent,
  type PodJournal,
  type PodStep,
  type PodUid,
} from '../../pods/index.ts';
import { restoreContainer } from '../containers/labels.ts';
import type { HookRunner } from '../hooks/lifecycle-hooks.ts';
import { type HookCheckpoint, noHookCheckpoint } from '../hooks/lifecycle-hooks.ts';
import type { KillReason } from '../plan/pod-actions.ts';
import { type KillResult, killResult, type SyncAction } from '../sync/sync-result.ts';
import { graceSecondsOf, KillRecord, minimumGraceSeconds } from './kill-record.ts';
import { hasSidecar, settledWithin, TerminationOrder } from './termination-order.ts';

/** The parts of a listed or observed pod that are needed to kill it. */
export interface KillablePod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly { readonly id: string }[];
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: ObservedContainerState;
    /**
     * The image and annotations that the runtime reports; needed for a container that is not in the
     * pod's spec.
     */
    readonly image?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  }[];
}

export interface KillPodRequest {
  /** The pod with its spec, or a pod restored from the runtime when the spec is not available. */
  readonly pod: Pod;
  readonly running: KillablePod;
  /** Overrides the pod's grace period. Later kills can only shorten it. */
  readonly graceSeconds?: number | undefined;
}

export interface ContainerKill {
  readonly id: string;
  readonly name: string;
  readonly reason: KillReason;
  /** The restored spec of a container that is no longer in the pod's spec. */
  readonly container?: Container | undefined;
  /** The message of the Killing event; "Stopping container NAME" when empty. */
  readonly message?: string;
  readonly graceSeconds?: number | undefined;
}

export interface PodKillerDeps {
  readonly cri: Pick<CriClient, 'stopContainer' | 'stopPodSandbox' | 'containerStatus'>;
  readonly clock: Clock;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly hooks: HookRunner;
  readonly hookCheckpoint?: HookCheckpoint | undefined;
  /**
   * Called before a container of the pod is stopped; resolves when the termination of the pod is
   * persisted.
   */
  readonly beforeStop?: ((uid: PodUid) => Promise<void>) | undefined;
  /**
   * Called before a sandbox is stopped, because the cached status of the sandbox is then invalid.
   */
  readonly sandboxStopping?: ((podSandboxId: string) => void) | undefined;
}

interface KillTarget {
  readonly id: string;
  readonly pod: Pod;
  readonly container: Container;
  readonly message: string;
  readonly record: KillRecord;
}

const maxKillRecords = 1_000;

/**
 * Stops containers and pods. A cancelled or failed kill can be repeated: preStop hooks are not run
 * twice, and the time already used counts towards the grace period. A repeated kill can shorten the
 * grace period.
 */
export class PodKiller implements Disposable {
  readonly #deps: PodKillerDeps;
  readonly #hookCheckpoint: HookCheckpoint;
  /** The containers that are being stopped, by ID. */
  readonly #records = new LruMap<string, KillRecord>({
    capacity: maxKillRecords,
    onEvict: (_id, record) => record[Symbol.dispose](),
  });

  constructor(deps: PodKillerDeps) {
    this.#deps = deps;
    this.#hookCheckpoint = deps.hookCheckpoint ?? noHookCheckpoint;
  }

  /** The number of containers that are being stopped. */
  get size(): number {
    return this.#records.size;
  }

  /**
   * Stops all containers concurrently, sidecars after the regular ones; then stops every sandbox,
   * even if a container has failed to stop. Rejects only when the signal is aborted; removes
   * nothing.
   */
  async killPod(request: KillPodRequest, signal: AbortSignal): Promise<KillResult> {
    const { running, pod, graceSeconds } = request;
    const alive = running.containers.filter(mayRun);
    for (const { id, state } of running.containers) if (state === 'exited') this.forget(id);
    const names = alive.map(({ name }) => name);
    const order = hasSidecar(pod) ? new TerminationOrder(pod, names) : undefined;
    const containers = await Promise.all(
      alive.map((one) => {
        const { id, name } = one;
        const container = restoreContainer(one);
        const kill = { id, name, container, reason: 'PodTermination', graceSeconds } as const;
        return this.#killOne(pod, kill, order, signal);
      }),
    );
    signal.throwIfAborted();
    const sandboxes = await Promise.all(running.sandboxes.map(({ id }) => this.#stopSandbox(id, signal)));
    signal.throwIfAborted();
    return killResult([...containers, ...sandboxes]);
  }

  /** Stops one container of a pod that keeps running. Rejects only when the signal is aborted. */
  async killContainer(pod: Pod, kill: ContainerKill, signal: AbortSignal): Promise<SyncAction> {
    const action = await this.#killOne(pod, kill, undefined, signal);
    signal.throwIfAborted();
    return action;
  }

  /**
   * Whether the preStop hook was started, by this or a previous kubelet, and the container has not
   * stopped since.
   */
  hasStartedPreStop({ metadata: { uid } }: Pod, containerId: string): boolean {
    return this.#hookCheckpoint.startedPreStop(uid, containerId) !== undefined;
  }

  /** Removes the kill records of a deleted pod. */
  forgetPod(uid: PodUid): void {
    for (const [id, record] of [...this.#records]) if (record.podUid === uid) this.forget(id);
  }

  /** Removes the kill record of a stopped container. */
  forget(id: string): void {
    this.#records.peek(id)?.[Symbol.dispose]();
    this.#records.delete(id);
  }

  /** Cancels all running preStop hooks. */
  [Symbol.dispose](): void {
    for (const [, record] of this.#records) record[Symbol.dispose]();
    this.#records.clear();
  }

  async #killOne(
    pod: Pod,
    kill: ContainerKill,
    order: TerminationOrder | undefined,
    signal: AbortSignal,
  ): Promise<SyncAction> {
    const action: SyncAction = { action: 'KillContainer', target: kill.name };
    try {
      await this.#stopGracefully(this.#targetOf(pod, kill), order, signal);
      order?.stopped(kill.name);
      return action;
    } catch (error) {
      const message = describeError(error);
      if (!signal.aborted) {
        this.#deps.logger.error('Failed to stop container', error, { container: kill.name, id: kill.id });
      }
      return { ...action, failure: { reason: 'KillContainerError', message } };
    }
  }

  #targetOf(pod: Pod, kill: ContainerKill): KillTarget {
    const container = containerSpecOf(pod, kill);
    const graceSeconds = kill.graceSeconds ?? graceSecondsOf(pod, container, kill.reason);
    const message = kill.message || `Stopping container ${container.name}`;
    return { pod, container, id: kill.id, message, record: this.#record(pod, kill.id, graceSeconds) };
  }

  #record(pod: Pod, id: string, graceSeconds: number): KillRecord {
    const known = this.#records.get(id);
    known?.allow(graceSeconds);
    if (known !== undefined) return known;
    const { uid } = pod.metadata;
    const record = new KillRecord(
      uid,
      this.#deps.clock,
      graceSeconds,
      this.#hookCheckpoint.startedPreStop(uid, id),
    );
    this.#records.set(id, record);
    return record;
  }

  async #stopGracefully(
    victim: KillTarget,
    order: TerminationOrder | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { record, container, id } = victim;
    if (!record.announced) this.#event(victim, 'Normal', 'Killing', victim.message);
    record.announced = true;
    const startMs = this.#deps.clock.monotonicMs();
    await this.#waitForPreStop(victim, signal);
    await order?.waitForPredecessors(container.name, record.msLeft, this.#deps.clock, signal);
    await this.#deps.beforeStop?.(victim.pod.metadata.uid);
    await this.#stop(id, Math.max(record.secondsLeft, minimumGraceSeconds), signal);
    this.forget(id);
    if (container.lifecycle?.preStop !== undefined)
      await this.#hookCheckpoint.containerStopped(victim.pod, id);
    const ms = this.#deps.clock.monotonicMs() - startMs;
    this.#step(victim, 'done', `Stopped container ${container.name}`, ms);
  }

  async #waitForPreStop(victim: KillTarget, signal: AbortSignal): Promise<void> {
    const { record, container } = victim;
    const preStop = container.lifecycle?.preStop;
    if (preStop === undefined || (record.hook === undefined && record.secondsLeft <= 0)) return;
    const run = record.hook ?? record.startHook((hookSignal) => this.#runHook(victim, hookSignal));
    await settledWithin(run.ended, record.msLeft, this.#deps.clock, signal);
  }

  async #runHook(victim: KillTarget, signal: AbortSignal): Promise<void> {
    const { pod, container, id, record } = victim;
    const preStop = container.lifecycle?.preStop;
    if (preStop === undefined) return;
    const startMs = this.#deps.clock.monotonicMs();
    const left = remainingHook(preStop, record.hookUsedMs);
    if (left === undefined) {
      this.#step(victim, 'done', 'The preStop hook was started by a previous kubelet and is not run again');
      return;
    }
    try {
      if (record.hookUsedMs === undefined)
        await this.#hookCheckpoint.recordPreStop(pod, id, record.secondsLeft);
      await this.#deps.hooks.run(left, { pod, container, containerId: id }, signal);
      const ms = this.#deps.clock.monotonicMs() - startMs;
      this.#step(victim, 'done', `Ran the preStop hook of container ${container.name}`, ms);
    } catch (error) {
      this.#hookFailed(victim, error, this.#deps.clock.monotonicMs() - startMs, signal);
    }
  }

  #hookFailed(victim: KillTarget, error: unknown, ms: number, signal: AbortSignal): void {
    const { pod, container } = victim;
    // The error is only logged, because it may contain secrets of the container.
    this.#deps.logger.error('PreStop hook failed', error, {
      pod: describePod(pod),
      container: container.name,
    });
    const why = signal.aborted ? describeError(signal.reason) : 'PreStopHook failed';
    const message = `The preStop hook of container ${container.name} failed: ${why}`;
    this.#step(victim, 'failed', message, ms);
    if (!signal.aborted) this.#event(victim, 'Warning', 'FailedPreStopHook', 'PreStopHook failed');
  }

  async #stop(containerId: string, seconds: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.cri.stopContainer({ containerId, timeout: BigInt(seconds) }, signal);
    } catch (error) {
      if (isKind(error, 'NotFound')) return;
      signal.throwIfAborted();
      if (!(await this.#hasExited(containerId, signal))) throw error;
    }
  }

  /** StopContainer may fail because the container has exited in the meantime. */
  async #hasExited(containerId: string, signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#deps.cri.containerStatus({ containerId }, signal);
      return status?.state === 'CONTAINER_EXITED';
    } catch (error) {
      return isKind(error, 'NotFound');
    }
  }

  async #stopSandbox(podSandboxId: string, signal: AbortSignal): Promise<SyncAction> {
    const action: SyncAction = { action: 'KillPodSandbox', target: podSandboxId };
    this.#deps.sandboxStopping?.(podSandboxId);
    try {
      await this.#deps.cri.stopPodSandbox({ podSandboxId }, signal);
      return action;
    } catch (error) {
      if (isKind(error, 'NotFound')) return action;
      if (!signal.aborted)
        this.#deps.logger.error('Failed to stop sandbox', error, { sandbox: podSandboxId });
      return { ...action, failure: { reason: 'KillPodSandboxError', message: describeError(error) } };
    }
  }

  #step({ pod, container }: KillTarget, outcome: PodStep['outcome'], message: string, ms?: number): void {
    const step: PodStep = { stage: 'termination', outcome, message, container: container.name, ms };
    this.#deps.journal.step(pod.metadata.uid, step);
  }

  #event({ pod, container }: KillTarget, type: PodEvent['type'], reason: string, message: string): void {
    const fieldPath = containerFieldPath(pod, container.name);
    this.#deps.journal.event(pod, { type, reason, message, fieldPath });
  }
}

/**
 * Returns the remaining part of a preStop hook that a previous kubelet started. The progress of the
 * hook is unknown, and repeating it may do harm, so only a sleep is continued.
 */
function remainingHook(hook: LifecycleHandler, usedMs: number | undefined): LifecycleHandler | undefined {
  if (usedMs === undefined) return hook;
  const leftMs = (hook.sleep?.seconds ?? 0) * 1_000 - usedMs;
  return leftMs > 0 ? { sleep: { seconds: leftMs / 1_000 } } : undefined;
}

/**
 * Returns the spec of the container, or the restored spec when the container is no longer in the
 * pod's spec.
 */
function containerSpecOf(pod: Pod, { name, container = { name } }: ContainerKill): Container {
  return (
    findNamed(pod.spec.containers, name) ??
    findNamed(initContainersOf(pod), name) ??
    findNamed(ephemeralContainersOf(pod), name) ??
    container
  );
}
