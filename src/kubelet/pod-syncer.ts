import type { PodCheckpoints, PodDirectories } from '../checkpoints/index.ts';
import type { Container, PodStatus, ResourceStatus } from '../kinds/index.ts';
import { type Clock, describeError, isKind, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import {
  allContainersRun,
  beforeDeadline,
  describePod,
  hasFinalExit,
  isPastDeadline,
  isStaticPod,
  isTerminalPhase,
  mayRun,
  type ObservedPod,
  type Pod,
  type PodJournal,
  type PodUid,
  type RuntimePod,
} from '../pods/index.ts';
import type { PodProbes } from '../probes/index.ts';
import { type DraManager, type PodResizes, prepareClaims } from '../resources/index.ts';
import {
  initializedSandbox,
  type KillPodRequest,
  type KillResult,
  type PlanContext,
  type SyncPodRequest,
  type SyncPodResult,
  type WaitingReason,
  withInterruptedStart,
} from '../runtime/index.ts';
import {
  generatePodStatus,
  mayRestartAll,
  rejectedPodStatus,
  reportsRestartingAll,
} from '../status/index.ts';
import type { VolumeManager } from '../volumes/index.ts';
import type {
  PodSyncer,
  SyncPodContext,
  SyncRuntimePodContext,
  SyncTerminatedContext,
  SyncTerminatingContext,
} from '../workers/index.ts';
import type { ClusterLink } from './kubelet-deps.ts';

export interface SyncerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly runtime: {
    readonly reasons: { get(uid: PodUid, container: string): WaitingReason | undefined };
    syncPod(request: SyncPodRequest, signal: AbortSignal): Promise<SyncPodResult>;
    killPod(request: KillPodRequest, signal: AbortSignal): Promise<KillResult>;
    /**
     * Kills a pod of the runtime; calls `graceSeconds` right before the first container is stopped.
     */
    killRuntimePod(pod: RuntimePod, graceSeconds: () => number, signal: AbortSignal): Promise<KillResult>;
    removePod(pod: Pod, signal: AbortSignal): Promise<void>;
  };
  readonly statuses: {
    previousStatus(pod: Pod): PodStatus;
    setPodStatus(pod: Pod, status: PodStatus): PodStatus;
    terminatePod(pod: Pod): void;
  };
  readonly cgroups: {
    ensureExists(pod: Pod, signal: AbortSignal): Promise<'created' | 'there'>;
    destroy(pod: Pod, signal: AbortSignal): Promise<void>;
  };
  readonly directories: PodDirectories;
  readonly volumes: VolumeManager;
  /** Releases the user namespaces of pods. */
  readonly users: { release(uid: PodUid): Promise<void> };
  readonly checkpoints: Pick<
    PodCheckpoints,
    | 'get'
    | 'recordAdmission'
    | 'recordFinished'
    | 'recordKilled'
    | 'recordInitialized'
    | 'recordTermination'
    | 'secondsLeft'
    | 'recordTerminated'
    | 'wasAdmittedInThisBoot'
  >;
  readonly probes: Pick<PodProbes, 'begin' | 'ending' | 'removed' | 'planning' | 'published' | 'results'>;
  readonly isTerminationRequested: (uid: PodUid) => boolean;
  /** Whether a source still has the pod; if not, none of its data has to be retained. */
  readonly isDesired: (uid: PodUid) => boolean;
  /**
   * The UID of another pod of the same name that is still running although no source has it;
   * undefined if there is none.
   */
  readonly orphanWithNameOf: (pod: Pod) => PodUid | undefined;
  /** The reasons why pods without host network cannot start now; empty when they can. */
  readonly networkProblems: () => readonly string[];
  readonly nodeIps: () => readonly string[];
  /** Counts a pod that was admitted but is rejected later. */
  readonly rejected: (reason: string) => void;
  /** Prepares the ResourceClaims of pods; without it pods cannot have claims. */
  readonly claims?: Pick<DraManager, 'prepare' | 'unprepare'> | undefined;
  /** The cluster of the node; undefined for a standalone node. */
  readonly cluster: Pick<ClusterLink, 'objects' | 'tokens'> | undefined;
  /** The state of the pod in the runtime, as it was last observed. */
  readonly lastObserved: (uid: PodUid) => ObservedPod | undefined;
  readonly resizes: Pick<PodResizes, 'observe' | 'statusOf' | 'synced' | 'cgroupCreated'>;
  /** Whether the newest sandbox can still be used for the pod. */
  readonly hasUsableSandbox: (pod: Pod, observed: ObservedPod) => boolean;
  /** The health of the devices of a container; by default none is reported. */
  readonly deviceStatus?: ((uid: PodUid, container: string) => readonly ResourceStatus[]) | undefined;
  /** Whether this runtime handler supports recursive read-only mounts. */
  readonly supportsRecursiveReadOnly: (handler: string) => boolean;
}

const orphanRetryMs = 500;
/** The maximum time for which a hanging disk blocks the worker of a pod. */
const volumeWaitMs = 123_000;
const deadlineMessage = 'Pod was active on the node longer than the specified deadline';

interface Publishing {
  /** Changes the computed status before it is published. */
  readonly change?: ((status: PodStatus) => PodStatus) | undefined;
  /** The IDs of containers that the kubelet stopped after it observed the pod in the runtime. */
  readonly stopped?: ReadonlySet<string> | undefined;
}

/**
 * The work that the worker of a pod does for each state of the pod: syncing, terminating,
 * terminated.
 */
export class KubeletPodSyncer implements PodSyncer {
  readonly #deps: SyncerDeps;

  constructor(deps: SyncerDeps) {
    this.#deps = deps;
  }

  async syncPod(context: SyncPodContext, signal: AbortSignal): Promise<'terminal' | 'not-terminal'> {
    const { pod } = context;
    const { startUnderWay } = this.#deps.checkpoints.get(pod.metadata.uid) ?? {};
    const observed = withInterruptedStart(context.observed, startUnderWay);
    this.#deps.resizes.observe(pod, observed);
    const previous = this.#deps.statuses.previousStatus(pod);
    const status = this.#publish(pod, observed, 'active');
    if (isTerminalPhase(status.phase) || isTerminalPhase(pod.status.phase)) {
      await this.#recordFinished(pod, status);
      return 'terminal';
    }
    this.#deps.cluster?.objects.register(pod);
    this.#requireNetwork(pod);
    this.#requireOrphanTerminated(pod, observed);
    if ((await this.#prepareOrReject(pod, observed, status, signal)) === 'rejected') return 'terminal';
    // If the pod has a usable sandbox, its ResourceClaims were prepared before the sandbox was
    // created.
    if (!this.#deps.hasUsableSandbox(pod, observed)) await prepareClaims(this.#deps, pod, signal);
    this.#deps.probes.begin(pod);
    const planning = this.#planContext(pod, status, previous);
    const recorded = this.#recordInitialized(pod, observed, planning);
    let published = observed;
    let lastObserved = this.#deps.lastObserved(pod.metadata.uid);
    const sandboxReady = (now: ObservedPod, stopped: ReadonlySet<string>) => {
      published = now;
      lastObserved = this.#deps.lastObserved(pod.metadata.uid);
      this.#publish(pod, now, 'starting', { stopped });
    };
    const request = { pod, observed, context: planning, sandboxReady };
    const work = (inner: AbortSignal) => this.#deps.runtime.syncPod(request, inner);
    const result = await beforeDeadline(this.#deps.clock, pod, status, work, signal).finally(() => recorded);
    if (result.actions.length > 0) context.requestRelist();
    this.#deps.resizes.synced(pod, result);
    if (result.error !== undefined) {
      // Publishes the start failure immediately instead of with the next sync. If this sync was
      // slow, another caller may have set a newer status, which is not overwritten.
      const now = this.#deps.lastObserved(pod.metadata.uid);
      const newest =
        now === undefined || now === lastObserved
          ? published
          : withoutExitsOf(result.stopped, now, published);
      this.#publish(pod, newest, 'active', { stopped: result.stopped });
      throw result.error;
    }
    return 'not-terminal';
  }

  async syncTerminatingPod(context: SyncTerminatingContext, signal: AbortSignal): Promise<void> {
    const { pod, observed } = context;
    const status = this.#publish(pod, observed, 'ending', { change: context.statusFn });
    context.requestRelist();
    this.#deps.probes.ending(pod.metadata.uid);
    if (context.statusFn !== undefined && isTerminalPhase(status.phase))
      await this.#deps.checkpoints.recordKilled(pod, status);
    const graceSeconds = await this.#recordTermination(pod, observed, context.graceSeconds);
    signal.throwIfAborted();
    const { error } = await this.#deps.runtime.killPod({ pod, running: observed, graceSeconds }, signal);
    if (error !== undefined) {
      this.#deps.journal.event(pod, {
        type: 'Warning',
        reason: 'FailedKillPod',
        message: `error killing pod: ${error.message}`,
      });
      throw error;
    }
    const after = await context.observeNow(signal);
    const running = after.containers.filter(({ state }) => state === 'running').map(({ name }) => name);
    if (running.length > 0) {
      throw new KubelingError(
        'POD_STILL_RUNS',
        `Containers of ${describePod(pod)} still run: ${running.join(', ')}`,
      );
    }
    await this.#deps.claims?.unprepare(pod.metadata.uid, signal);
    this.#deps.probes.removed(pod.metadata.uid);
    // The exit codes are final because all containers have stopped.
    this.#publish(pod, after, 'ending', { change: context.statusFn });
    this.#deps.journal.step(pod.metadata.uid, {
      stage: 'termination',
      outcome: 'done',
      message: 'all containers have stopped',
    });
  }

  async syncTerminatingRuntimePod(context: SyncRuntimePodContext, signal: AbortSignal): Promise<void> {
    const { checkpoints, runtime } = this.#deps;
    const { runningPod, graceSeconds: given } = context;
    const graceSeconds = () => Math.min(given, checkpoints.secondsLeft(runningPod.uid) ?? given);
    const { error } = await runtime.killRuntimePod(runningPod, graceSeconds, signal);
    context.requestRelist();
    if (error !== undefined) throw error;
  }

  async syncTerminatedPod({ pod, observed }: SyncTerminatedContext, signal: AbortSignal): Promise<void> {
    this.#publish(pod, observed, 'ending');
    const { uid } = pod.metadata;
    const fate = this.#deps.isDesired(uid) ? 'desired' : 'undesired';
    if (fate === 'undesired') await this.#removeContent(pod, signal);
    await this.#withVolumeDeadline(
      'remove the volumes',
      (inner) => this.#deps.volumes.remove(pod, inner),
      signal,
    );
    this.#deps.cluster?.objects.unregister(uid);
    this.#deps.cluster?.tokens.forgetPod(uid);
    await this.#deps.users.release(uid);
    await this.#deps.cgroups.destroy(pod, signal);
    await this.#deps.checkpoints.recordTerminated(uid, fate);
    this.#deps.statuses.terminatePod(pod);
  }

  /**
   * Rejects a pod that was admitted before, so that its controller can create it on another node.
   */
  async #reject(pod: Pod, reason: string, message: string): Promise<void> {
    const { journal, statuses, nodeIps, rejected, checkpoints } = this.#deps;
    journal.event(pod, { type: 'Warning', reason, message });
    rejected(reason);
    const why = { reason, message: `Pod was rejected: ${message}` };
    await checkpoints.recordFinished(pod, statuses.setPodStatus(pod, rejectedPodStatus(pod, why, nodeIps())));
  }

  #planContext(pod: Pod, status: PodStatus, previous: PodStatus): PlanContext {
    return {
      ...this.#deps.probes.planning(status),
      initializedSandboxId: this.#deps.checkpoints.get(pod.metadata.uid)?.initializedSandbox,
      // A static pod has no final exits: it starts again with the UID and the status of its
      // previous instance.
      hasFinalExit: (container: Container) =>
        !isStaticPod(pod) && !mayRestartAll(pod) && hasFinalExit(pod, container, previous),
      restart: reportsRestartingAll(status) ? 'all-containers' : undefined,
    };
  }

  /**
   * While the regular containers start, writes a checkpoint which says that the init containers of
   * the sandbox have finished. Without this checkpoint, a restarted kubelet inspects the init
   * containers instead.
   */
  async #recordInitialized(pod: Pod, observed: ObservedPod, context: PlanContext): Promise<void> {
    // A pod that restarts all containers runs its init containers again, also in the same sandbox.
    const isReset = context.restart === 'all-containers';
    const sandboxId = isReset ? '' : initializedSandbox(pod, observed, context);
    if (sandboxId === undefined || sandboxId === context.initializedSandboxId) return;
    await this.#deps.checkpoints.recordInitialized(pod.metadata.uid, sandboxId);
  }

  /**
   * Records the final status unless termination was requested: the status of containers that the
   * kubelet killed is not the result of the pod's own work.
   */
  async #recordFinished(pod: Pod, status: PodStatus): Promise<void> {
    if (!this.#deps.isTerminationRequested(pod.metadata.uid))
      await this.#deps.checkpoints.recordFinished(pod, status);
  }

  /**
   * Persists the termination before the first container is stopped. Returns the remaining grace
   * period, of which a previous kubelet may have used a part.
   */
  async #recordTermination(
    pod: Pod,
    observed: ObservedPod,
    graceSeconds: number | undefined,
  ): Promise<number | undefined> {
    const { checkpoints } = this.#deps;
    const { metadata, spec } = pod;
    const given = graceSeconds ?? metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds;
    const isAlive = observed.containers.some(mayRun);
    if (given === undefined) return undefined;
    if (isAlive) await checkpoints.recordTermination(pod, given);
    return Math.min(given, checkpoints.secondsLeft(metadata.uid) ?? given);
  }

  /**
   * Removes the sandboxes and containers of a terminated pod. Never fails: garbage collection
   * removes what remains, and termination must not wait for it.
   */
  async #removeContent(pod: Pod, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.runtime.removePod(pod, signal);
    } catch (error) {
      signal.throwIfAborted();
      const podUid = pod.metadata.uid;
      this.#deps.logger.warn('Left containers of terminated pod to garbage collection', {
        podUid,
        because: describeError(error),
      });
    }
  }

  #requireNetwork(pod: Pod): void {
    const problems = pod.spec.hostNetwork === true ? [] : this.#deps.networkProblems();
    if (problems.length === 0) return;
    const message = `network is not ready: ${problems.join('; ')}`;
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'NetworkNotReady', message });
    throw new KubelingError('NETWORK_NOT_READY', message);
  }

  /**
   * Waits until a previous pod of the same name has terminated, because both pods would write to
   * the same files.
   */
  #requireOrphanTerminated(pod: Pod, observed: ObservedPod): void {
    if (!isStaticPod(pod) || observed.sandboxes.some(({ state }) => state === 'ready')) return;
    const orphan = this.#deps.orphanWithNameOf(pod);
    if (orphan === undefined) return;
    const message = `waits until the pod ${orphan} of the same name has terminated`;
    this.#deps.journal.step(pod.metadata.uid, { stage: 'seen', outcome: 'waiting', message });
    const retryAtMs = this.#deps.clock.monotonicMs() + orphanRetryMs;
    throw new KubelingError('POD_NAME_HELD', `The pod ${message}`, { details: { retryAtMs } });
  }

  /** Rejects a pod that has not run yet if its volumes exceed the attachment limit of this node. */
  async #prepareOrReject(
    pod: Pod,
    observed: ObservedPod,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<'prepared' | 'rejected'> {
    try {
      await this.#prepare(pod, observed, status, signal);
      return 'prepared';
    } catch (error) {
      const hasRun = observed.containers.length > 0 || observed.sandboxes.length > 0;
      if (!(error instanceof KubelingError) || error.code !== 'VOLUME_ATTACH_LIMIT' || hasRun) throw error;
      await this.#reject(pod, 'VolumeAttachmentLimitExceeded', error.message);
      return 'rejected';
    }
  }

  /**
   * Checks for termination again before anything is created: termination may have been requested
   * while the status was published.
   */
  async #prepare(pod: Pod, observed: ObservedPod, status: PodStatus, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    if (this.#deps.isTerminationRequested(uid))
      throw new KubelingError('CANCELLED', 'The pod is terminating');
    const creations = [
      this.#deps.cgroups.ensureExists(pod, signal),
      this.#withVolumeDeadline(
        'create the directories',
        (inner) => this.#createDirectories(pod, observed, status, inner),
        signal,
      ).catch((error: unknown) => {
        if (!signal.aborted && isKind(error, 'DeadlineExceeded')) this.#deps.volumes.reportTimedOut(pod);
        throw error;
      }),
    ] as const;
    // If creating the cgroup fails, the sync still waits for the creation of the directories, and
    // vice versa, so that no work continues in the background.
    await Promise.allSettled(creations);
    const [cgroup] = await Promise.all(creations);
    if (cgroup === 'created') this.#deps.resizes.cgroupCreated(pod);
    if (cgroup === 'created')
      this.#deps.journal.step(uid, { stage: 'cgroup', outcome: 'done', message: 'created' });
    if (cgroup === 'created' && observed.containers.some(({ state }) => state === 'running')) {
      // Processes outside the pod's cgroup escape its limits. If the cgroup was missing while
      // containers ran, they are killed and started again inside it.
      const { error } = await this.#deps.runtime.killPod({ pod, running: observed }, signal);
      throw (
        error ??
        new KubelingError('POD_CGROUP_LOST', 'The cgroup of the pod was missing while its containers ran')
      );
    }
  }

  async #createDirectories(
    pod: Pod,
    observed: ObservedPod,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#deps.checkpoints.wasAdmittedInThisBoot(pod.metadata.uid) && allContainersRun(pod, observed)) {
      await this.#deps.volumes.refresh(pod, signal);
      return;
    }
    await this.#deps.directories.create(pod.metadata.uid, signal);
    signal.throwIfAborted();
    await Promise.all([
      this.#deps.checkpoints.recordAdmission(pod, status),
      this.#deps.volumes.prepare(pod, signal),
    ]);
  }

  /** Rejects as soon as the signal is aborted, even if the work ignores the signal. */
  async #withVolumeDeadline(
    what: string,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    await withDeadline({ clock, ms: volumeWaitMs, what: `${what} of a pod` }, work, signal);
  }

  #publish(
    pod: Pod,
    observed: ObservedPod,
    state: 'active' | 'starting' | 'ending',
    { change, stopped }: Publishing = {},
  ): PodStatus {
    const { statuses, runtime, nodeIps, hasUsableSandbox, checkpoints, probes } = this.#deps;
    const previous = statuses.previousStatus(pod);
    const handler = observed.sandboxes[0]?.runtimeHandler ?? '';
    const generated = generatePodStatus(pod, observed, {
      previous,
      isTerminal: state === 'ending',
      hasUsableSandbox: hasUsableSandbox(pod, observed),
      startError: (container) => runtime.reasons.get(pod.metadata.uid, container),
      probes: probes.results,
      stopped,
      noted: (containerId) => checkpoints.get(pod.metadata.uid)?.status?.probed?.[containerId],
      nodeIps: nodeIps(),
      devices: (container) => this.#deps.deviceStatus?.(pod.metadata.uid, container) ?? [],
      ...this.#deps.resizes.statusOf(pod, observed),
      recursiveReadOnly: this.#deps.supportsRecursiveReadOnly(handler) ? 'supported' : 'unsupported',
      // activeDeadlineSeconds is not applied while containers start, but with the next sync.
      eviction: state === 'starting' ? undefined : this.#pastDeadline(pod, previous),
    });
    const status = statuses.setPodStatus(pod, change === undefined ? generated : change(generated));
    probes.published(pod.metadata.uid, status);
    return status;
  }

  #pastDeadline(pod: Pod, previous: PodStatus) {
    if (!isPastDeadline(pod, previous, this.#deps.clock.now())) return undefined;
    if (!isTerminalPhase(previous.phase)) {
      this.#deps.journal.event(pod, { type: 'Normal', reason: 'DeadlineExceeded', message: deadlineMessage });
    }
    return { reason: 'DeadlineExceeded', message: deadlineMessage };
  }
}

/**
 * Returns the state of the pod in the runtime after the sync. A container that the sync stopped in
 * order to replace it keeps its state from before the sync, because the status of a pod with
 * restartPolicy Never could not report the exit of that container correctly.
 */
function withoutExitsOf(stopped: ReadonlySet<string>, now: ObservedPod, seen: ObservedPod): ObservedPod {
  if (stopped.size === 0) return now;
  const before = new Map(seen.containers.map((container) => [container.id, container]));
  const containers = now.containers.map((container) =>
    stopped.has(container.id) ? (before.get(container.id) ?? container) : container,
  );
  return { ...now, containers };
}
