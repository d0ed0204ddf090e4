import type { CriClient } from '../../cri/index.ts';
import type { Container, LifecycleHandler } from '../../kinds/index.ts';
import { type Clock, describeError, isKind, type Logger, LruMap } from '../../lib/index.ts';
import {
  containerFieldPath,
  describePod,
  ephemeralContainersOf,
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

/** What is there of a pod to be stopped: a listing or an observation will do. */
export interface KillablePod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly { readonly id: string }[];
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: ObservedContainerState;
    /** What the runtime remembers of it, for one that the spec no longer has. */
    readonly image?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  }[];
}

export interface KillPodRequest {
  /** Its spec, or as much of it as the runtime remembers. */
  readonly pod: Pod;
  readonly running: KillablePod;
  /** Replaces what the pod says. A later call may give less, never more. */
  readonly graceSeconds?: number | undefined;
}

export interface ContainerKill {
  readonly id: string;
  readonly name: string;
  readonly reason: KillReason;
  /** For one that the pod's spec does not have. */
  readonly container?: Container | undefined;
  /** Shown to users; "Stopping container NAME" when empty. */
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
  /** Settles when the end a container of the pod is about to be told is known to whoever comes after us. */
  readonly beforeStop?: ((uid: PodUid) => Promise<void>) | undefined;
  /** What was known of the sandbox is over. */
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
 * Stops containers and pods. A kill that was given up or failed can be ordered again: hooks are not run twice, and
 * the time already used counts. Order it again with less time to have a container stopped sooner.
 */
export class PodKiller implements Disposable {
  readonly #deps: PodKillerDeps;
  readonly #hookCheckpoint: HookCheckpoint;
  /** Containers on their way out, by id. */
  readonly #records = new LruMap<string, KillRecord>({
    capacity: maxKillRecords,
    onEvict: (_id, record) => record[Symbol.dispose](),
  });

  constructor(deps: PodKillerDeps) {
    this.#deps = deps;
    this.#hookCheckpoint = deps.hookCheckpoint ?? noHookCheckpoint;
  }

  /** Containers ordered to stop that have not stopped yet, as far as known. */
  get size(): number {
    return this.#records.size;
  }

  /**
   * Stops all containers at once, sidecars after the others, then every sandbox even if a container would not stop.
   * Rejects only when the signal is aborted; removes nothing.
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

  /** Stops one container of a pod that goes on. Rejects only when the signal is aborted. */
  async killContainer(pod: Pod, kill: ContainerKill, signal: AbortSignal): Promise<SyncAction> {
    const action = await this.#killOne(pod, kill, undefined, signal);
    signal.throwIfAborted();
    return action;
  }

  /** Whether the preStop hook of a container was begun, by whichever kubelet, and the container has not ended since. */
  hasStartedPreStop({ metadata: { uid } }: Pod, containerId: string): boolean {
    return this.#hookCheckpoint.startedPreStop(uid, containerId) !== undefined;
  }

  /** The pod is gone for good, whoever ended its containers. */
  forgetPod(uid: PodUid): void {
    for (const [id, record] of [...this.#records]) if (record.podUid === uid) this.forget(id);
  }

  /** The container is gone, whoever ended it. */
  forget(id: string): void {
    this.#records.peek(id)?.[Symbol.dispose]();
    this.#records.delete(id);
  }

  /** What is still running of hooks is given up. */
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
        this.#deps.logger.error('Cannot stop a container', error, { container: kill.name, id: kill.id });
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
      this.#step(victim, 'done', 'The preStop hook was begun by an earlier kubelet: it is not run again');
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
    // What it said stays in the log: it may hold secrets of the container.
    this.#deps.logger.error('PreStop hook failed', error, {
      pod: describePod(pod),
      container: container.name,
    });
    const why = signal.aborted ? describeError(signal.reason) : 'PreStopHook failed';
    const message = `The preStop hook of container ${container.name} did not succeed: ${why}`;
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

  /** A runtime may stumble over a container that ends in the very moment it is to be stopped. */
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
      if (!signal.aborted) this.#deps.logger.error('Cannot stop a sandbox', error, { sandbox: podSandboxId });
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
 * What is still to be done of a hook that an earlier kubelet began so long ago. Nobody knows how far it came, and to do
 * half of its work twice may be worse than not to do the rest; only a sleep can be gone on with.
 */
function remainingHook(hook: LifecycleHandler, usedMs: number | undefined): LifecycleHandler | undefined {
  if (usedMs === undefined) return hook;
  const leftMs = (hook.sleep?.seconds ?? 0) * 1_000 - usedMs;
  return leftMs > 0 ? { sleep: { seconds: leftMs / 1_000 } } : undefined;
}

/** One that the spec no longer has is stopped as the runtime remembers it, with the time its pod has. */
function containerSpecOf(pod: Pod, { name, container = { name } }: ContainerKill): Container {
  const all = [...pod.spec.containers, ...initContainersOf(pod), ...ephemeralContainersOf(pod)];
  return all.find((each) => each.name === name) ?? container;
}
