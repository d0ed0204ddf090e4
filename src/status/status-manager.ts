import type { Container, ContainerState, ContainerStatus, PodCondition, PodStatus } from '../kinds/index.ts';
import {
  apiTime,
  type Buffering,
  type Clock,
  type Logger,
  type Subscription,
  TypedEvents,
} from '../lib/index.ts';
import {
  describePod,
  findNamed,
  initContainersOf,
  isSidecar,
  isStaticPod,
  isTerminalPhase,
  type Pod,
  type PodUid,
  restartsAfterExit,
} from '../pods/index.ts';
import { findCondition, isOurCondition, isResizeCondition, replaceReadiness } from './conditions.ts';
import { lostAtTermination, statusUnknown } from './container-statuses.ts';
import { normalizeStatus, sameStatus } from './normalize.ts';
import { mayRestartAll } from './restart-all.ts';

/** A pod status with its version. */
export interface VersionedStatus {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** Version of the status: starts with 1 and increases by one with every change. */
  readonly version: number;
  readonly status: PodStatus;
  /** Whether all resources of the pod were removed from the node; never becomes false again. */
  readonly isFinished: boolean;
  /** Time of this version on the monotonic clock. */
  readonly changedAtMs: number;
}

export interface StatusChange {
  readonly uid: PodUid;
  readonly pod: Pod;
  readonly before: PodStatus | undefined;
  readonly after: PodStatus;
  readonly version: number;
  readonly isFinished: boolean;
}

interface StatusEvents {
  changed: StatusChange;
}

/** The part of the status manager that a status writer needs. */
export interface StatusSource {
  /**
   * Pods with a changed status, each listed once however often it changed; `entry` has the newest
   * status.
   */
  changes(): Subscription<StatusChange>;
  entry(uid: PodUid): VersionedStatus | undefined;
  entries(): Iterable<VersionedStatus>;
  /** Removes the status of a pod that was deleted from the API server. */
  forget(uid: PodUid): void;
}

export interface StatusManagerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Finds the desired pod by its UID or by the UID of its mirror pod. */
  readonly findPod: (uid: PodUid) => Pod | undefined;
}

/**
 * Maximum number of pods with unread status changes; beyond it the oldest change is dropped,
 * because a writer also compares all statuses periodically.
 */
const unreadPods = 1000;

/**
 * Caches the status of every pod of the node. No other class changes statuses, and all changes pass
 * through one method.
 */
export class StatusManager implements StatusSource {
  readonly #deps: StatusManagerDeps;
  readonly #entries = new Map<PodUid, VersionedStatus>();
  readonly #events: TypedEvents<StatusEvents>;

  constructor(deps: StatusManagerDeps) {
    this.#deps = deps;
    this.#events = new TypedEvents((error, event) => {
      deps.logger.error('Pod status listener failed', error, { event });
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Returns the cached status; undefined for a pod without one. The UID may be that of a mirror
   * pod.
   */
  getPodStatus(uid: PodUid): PodStatus | undefined {
    return (this.#entries.get(uid) ?? this.#entries.get(this.#ownUid(uid)))?.status;
  }

  /**
   * Returns the status from which the next one is computed: the cached status, or the one in the
   * given pod object if none is cached.
   */
  previousStatus(pod: Pod): PodStatus {
    return this.#restoredOf(pod)?.status ?? pod.status;
  }

  /** Caches a new status and returns it after normalization. */
  setPodStatus(pod: Pod, status: PodStatus): PodStatus {
    // A status of a deleted pod is passed to listeners even if it is unchanged, because the pod may
    // now be due for deletion from the API server.
    const isForced = pod.metadata.deletionTimestamp !== undefined;
    const observedGeneration = pod.metadata.generation;
    this.#update(pod, { ...status, observedGeneration }, isForced ? 'always' : 'if-changed');
    return this.#entries.get(pod.metadata.uid)?.status ?? pod.status;
  }

  /** Caches the result of a readiness probe. Results of unknown pods and containers are dropped. */
  setContainerReadiness(uid: PodUid, containerId: string, ready: boolean): void {
    this.#editContainer(uid, containerId, (status) => {
      const isReady = ready && status.state?.running !== undefined && status.started !== false;
      return status.ready === isReady ? undefined : { ...status, ready: isReady };
    });
  }

  /**
   * Marks a terminated container, found by its runtime ID, as not ready: it must not receive
   * traffic, even while its pod's worker is blocked for a long time.
   */
  setContainerEnded(uid: PodUid, id: string): void {
    const { containerStatuses = [], initContainerStatuses = [] } = this.getPodStatus(uid) ?? {};
    const all = [...containerStatuses, ...initContainerStatuses];
    const { containerID, state } = all.find((one) => one.containerID?.endsWith(`://${id}`)) ?? {};
    if (containerID === undefined || state?.running === undefined) return;
    this.setContainerReadiness(uid, containerID, false);
  }

  /** Caches the result of a startup probe. */
  setContainerStartup(uid: PodUid, containerId: string, started: boolean): void {
    this.#editContainer(uid, containerId, (status) => {
      const isStarted = started && status.state?.running !== undefined;
      // The readiness of a container that has just started is decided by its readiness probe or by
      // the next sync.
      const ready = isStarted && status.ready;
      return status.started === isStarted ? undefined : { ...status, started: isStarted, ready };
    });
  }

  /**
   * Caches the final, irreversible status after all resources of the pod were removed from the
   * node.
   */
  terminatePod(pod: Pod): void {
    const status = this.#entries.get(pod.metadata.uid)?.status ?? pod.status;
    this.#update(pod, finalStatus(pod, status), 'final');
  }

  isFinished(uid: PodUid): boolean {
    return this.#entries.get(uid)?.isFinished === true;
  }

  /** Removes the statuses of pods that no longer exist. */
  removeOrphanedStatuses(known: ReadonlySet<PodUid>): void {
    for (const uid of this.#entries.keys()) if (!known.has(uid)) this.#entries.delete(uid);
  }

  forget(uid: PodUid): void {
    this.#entries.delete(uid);
  }

  /**
   * Removes the final status of an earlier instance of a static pod when the pod is desired again,
   * so that the old status is no longer delivered.
   */
  expectReturn(uid: PodUid): void {
    if (this.isFinished(uid)) this.forget(uid);
  }

  entry(uid: PodUid): VersionedStatus | undefined {
    return this.#entries.get(uid);
  }

  entries(): Iterable<VersionedStatus> {
    return this.#entries.values();
  }

  /** Calls the listener synchronously with every change; it must not block. */
  onChange(listener: (change: StatusChange) => unknown): Disposable {
    return this.#events.on('changed', listener);
  }

  changes(): Subscription<StatusChange> {
    const buffering: Buffering<StatusChange> = {
      keep: 'newest-of-key',
      capacity: unreadPods,
      keyOf: ({ uid }) => uid,
    };
    return this.#events.subscribe('changed', buffering);
  }

  /**
   * A terminated static pod that starts again with the same UID is a new instance without the
   * history of the old one.
   */
  #restoredOf(pod: Pod): VersionedStatus | undefined {
    const entry = this.#entries.get(pod.metadata.uid);
    return entry?.isFinished === true && isStaticPod(pod) ? undefined : entry;
  }

  #ownUid(uid: PodUid): PodUid {
    return this.#deps.findPod(uid)?.metadata.uid ?? uid;
  }

  #editContainer(
    uid: PodUid,
    containerId: string,
    edit: (status: ContainerStatus) => ContainerStatus | undefined,
  ): void {
    const pod = this.#deps.findPod(uid);
    const entry = pod === undefined ? undefined : this.#entries.get(pod.metadata.uid);
    if (pod === undefined || entry === undefined || entry.isFinished) return;
    const { status } = entry;
    let isEdited = false;
    const edited = (one: ContainerStatus) => {
      const changed = one.containerID === containerId ? edit(one) : undefined;
      isEdited ||= changed !== undefined;
      return changed ?? one;
    };
    const containerStatuses = status.containerStatuses?.map(edited);
    const initContainerStatuses = status.initContainerStatuses?.map(edited);
    if (!isEdited) return;
    this.#update(
      pod,
      replaceReadiness(pod, { ...status, containerStatuses, initContainerStatuses }),
      'if-changed',
    );
  }

  /** Changes a status; all other methods call this one. */
  #update(pod: Pod, given: PodStatus, when: 'if-changed' | 'always' | 'final'): void {
    const { uid, name, namespace } = pod.metadata;
    const kept = when === 'final' ? this.#entries.get(uid) : this.#restoredOf(pod);
    const before = kept?.status ?? pod.status;
    // A static pod that starts again keeps the UID of its previous instance and gets a new mirror
    // pod, so its containers may leave the terminated state.
    const restarted = isStaticPod(pod) ? [] : forbiddenRestarts(pod, before, given);
    if (restarted.length > 0) {
      this.#refuse(pod, restarted);
      return;
    }
    const status = this.#normalized(pod, before, given);
    const isFinished = when === 'final' || kept?.isFinished === true;
    if (kept !== undefined && when === 'if-changed' && sameStatus(kept.status, status)) return;
    const version = (this.#entries.get(uid)?.version ?? 0) + 1;
    const changedAtMs = this.#deps.clock.monotonicMs();
    this.#entries.set(uid, { uid, name, namespace, version, status, isFinished, changedAtMs });
    this.#events.emit('changed', { uid, pod, before: kept?.status, after: status, version, isFinished });
  }

  #refuse(pod: Pod, containers: readonly string[]): void {
    this.#deps.logger.warn('Rejected status with restart of a container that may not restart', {
      pod: describePod(pod),
      containers,
    });
  }

  /**
   * Enforces invariants of published statuses: a terminal phase and the start time never change,
   * and a transition time changes only with the status of its condition.
   */
  #normalized(pod: Pod, before: PodStatus, given: PodStatus): PodStatus {
    const now = apiTime(this.#deps.clock.now());
    const status = withFalseReadiness(pod, withStickyPhase(pod, before, given));
    return normalizeStatus(pod, {
      ...status,
      startTime: before.startTime ?? status.startTime ?? now,
      observedGeneration: highest(before.observedGeneration, status.observedGeneration),
      conditions: status.conditions?.map((one) => withTransitionTime(one, before, now)),
    });
  }
}

function withStickyPhase(pod: Pod, before: PodStatus, given: PodStatus): PodStatus {
  const ended = [pod.status, before].find(({ phase }) => isTerminalPhase(phase));
  if (ended === undefined || ended.phase === given.phase) return given;
  const { phase, reason, message } = ended;
  return { ...given, phase, reason, message };
}

/** A terminated pod is not ready, even when the exits of its containers are reported later. */
function withFalseReadiness(pod: Pod, status: PodStatus): PodStatus {
  const isReady = ['Ready', 'ContainersReady'].some((type) => findCondition(status, type)?.status === 'True');
  return isTerminalPhase(status.phase) && isReady ? replaceReadiness(pod, status) : status;
}

function withTransitionTime(condition: PodCondition, before: PodStatus, now: string): PodCondition {
  // A resize condition keeps the transition time that it has, also when its reason changes.
  if (!isOurCondition(condition.type) || isResizeCondition(condition.type)) return condition;
  const old = findCondition(before, condition.type);
  const isUnchanged = old?.status === condition.status && old.lastTransitionTime !== undefined;
  const observedGeneration = highest(old?.observedGeneration, condition.observedGeneration);
  return { ...condition, observedGeneration, lastTransitionTime: isUnchanged ? old.lastTransitionTime : now };
}

function highest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

/**
 * Computes the final status after all resources of the pod were removed from the node. A container
 * whose exit was not observed counts as failed, because success must be observed. Regular
 * containers of a pod that was never initialized stay waiting, because they never ran.
 */
export function finalStatus(pod: Pod, status: PodStatus): PodStatus {
  const regular = hasInitialized(pod, status)
    ? status.containerStatuses?.map(ended)
    : status.containerStatuses;
  const started = startedInits(status.initContainerStatuses ?? []);
  const init = status.initContainerStatuses?.map((one, index) => (index < started ? ended(one) : one));
  const phase = isTerminalPhase(status.phase) || isStaticPod(pod) ? status.phase : 'Failed';
  return replaceReadiness(pod, { ...status, phase, containerStatuses: regular, initContainerStatuses: init });
}

function ended(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  return { ...status, state: { terminated: lostAtTermination }, started: false, ready: false };
}

/** Whether the status shows that regular containers could start. */
function hasInitialized(pod: Pod, status: PodStatus): boolean {
  const containers = initContainersOf(pod);
  if (containers.length === 0 || (status.containerStatuses ?? []).some(hasStarted)) return true;
  const last = status.initContainerStatuses?.at(-1);
  const container = containers.find(({ name }) => name === last?.name);
  if (last === undefined || container === undefined) return false;
  if (isSidecar(container)) return last.state?.running !== undefined && last.started === true;
  return last.state?.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0;
}

function hasStarted({ state, lastState }: ContainerStatus): boolean {
  return (
    lastState?.terminated !== undefined || state?.running !== undefined || state?.terminated !== undefined
  );
}

/**
 * Returns how many init containers have started: all up to the last one whose status shows a start;
 * at least one.
 */
function startedInits(statuses: readonly ContainerStatus[]): number {
  return Math.max(1, statuses.findLastIndex(hasStarted) + 1);
}

/**
 * Returns the containers that would leave the terminated state although their restart rules forbid
 * it; such a status must not be published. Returns none for a valid change, and none for a pod with
 * restart policy Always: its init containers restart with a new sandbox, whatever their own
 * policies are.
 */
function forbiddenRestarts(pod: Pod, before: PodStatus, after: PodStatus): readonly string[] {
  if ((pod.spec.restartPolicy ?? 'Always') === 'Always' || mayRestartAll(pod)) return [];
  const plain = initContainersOf(pod).filter((container) => !isSidecar(container));
  return [
    ...forbidden(pod, plain, before.initContainerStatuses, after.initContainerStatuses),
    ...forbidden(pod, pod.spec.containers, before.containerStatuses, after.containerStatuses),
  ];
}

function forbidden(
  pod: Pod,
  containers: readonly Container[],
  before: readonly ContainerStatus[] = [],
  after: readonly ContainerStatus[] = [],
): readonly string[] {
  const back = containers.filter((container) => {
    const old = findNamed(before, container.name);
    const ended = old?.state?.terminated;
    const now = findNamed(after, container.name);
    if (ended === undefined || now === undefined || now.state?.terminated !== undefined) return false;
    return !wasAssumed(ended) && !restartsAfterExit(pod, container, ended.exitCode);
  });
  return back.map(({ name }) => name);
}

/**
 * Whether the exit was assumed because the runtime did not list the container. Such an exit is not
 * final: the container may reappear in the runtime, and an observed state replaces an assumed one.
 */
function wasAssumed({ reason }: NonNullable<ContainerState['terminated']>): boolean {
  return reason === statusUnknown;
}
