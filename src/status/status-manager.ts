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

/** A status with its place in the history of the pod's statuses. */
export interface VersionedStatus {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** Grows by one with every change, from 1. */
  readonly version: number;
  readonly status: PodStatus;
  /** Nothing of the pod is left on the machine; never taken back. */
  readonly isFinished: boolean;
  /** When this version was made, by the monotonic clock. */
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

/** What a writer of statuses to an API needs of the manager. */
export interface StatusSource {
  /** Pods whose status has changed, each once however often it changed; take the newest from `entry`. */
  changes(): Subscription<StatusChange>;
  entry(uid: PodUid): VersionedStatus | undefined;
  entries(): Iterable<VersionedStatus>;
  /** The pod is gone from the API: nothing is kept of it any more. */
  forget(uid: PodUid): void;
}

export interface StatusManagerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The pod as it is wanted now; also by the id of a mirror pod. */
  readonly findPod: (uid: PodUid) => Pod | undefined;
}

/** Beyond this many pods with unread changes the oldest is dropped; a writer compares everything now and then. */
const unreadPods = 1000;

/** Keeps the status of every pod of the node. Nobody else does; all changes pass through one door. */
export class StatusManager implements StatusSource {
  readonly #deps: StatusManagerDeps;
  readonly #entries = new Map<PodUid, VersionedStatus>();
  readonly #events: TypedEvents<StatusEvents>;

  constructor(deps: StatusManagerDeps) {
    this.#deps = deps;
    this.#events = new TypedEvents((error, event) => {
      deps.logger.error('A listener to pod statuses failed', error, { event });
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The kept status; undefined for a pod that has none yet. The id may be that of a mirror pod. */
  getPodStatus(uid: PodUid): PodStatus | undefined {
    return (this.#entries.get(uid) ?? this.#entries.get(this.#ownUid(uid)))?.status;
  }

  /** The status to build the next one upon: the kept one, else the one the pod came with. */
  previousStatus(pod: Pod): PodStatus {
    return this.#keptOf(pod)?.status ?? pod.status;
  }

  /** Takes a newly generated status. Answers the one that is kept from now on. */
  setPodStatus(pod: Pod, status: PodStatus): PodStatus {
    // A deleted pod has to come to its writer's notice even if nothing changes: it may be due for removal.
    const isForced = pod.metadata.deletionTimestamp !== undefined;
    const observedGeneration = pod.metadata.generation;
    this.#update(pod, { ...status, observedGeneration }, isForced ? 'always' : 'if-changed');
    return this.#entries.get(pod.metadata.uid)?.status ?? pod.status;
  }

  /** What a readiness probe found. Of a pod or container that is not known it is dropped. */
  setContainerReadiness(uid: PodUid, containerId: string, ready: boolean): void {
    this.#editContainer(uid, containerId, (status) => {
      const isReady = ready && status.state?.running !== undefined && status.started !== false;
      return status.ready === isReady ? undefined : { ...status, ready: isReady };
    });
  }

  /** One that has ended serves nobody, however long its pod's worker is busy with others. By the runtime's own id. */
  setContainerEnded(uid: PodUid, id: string): void {
    const { containerStatuses = [], initContainerStatuses = [] } = this.getPodStatus(uid) ?? {};
    const all = [...containerStatuses, ...initContainerStatuses];
    const { containerID, state } = all.find((one) => one.containerID?.endsWith(`://${id}`)) ?? {};
    if (containerID === undefined || state?.running === undefined) return;
    this.setContainerReadiness(uid, containerID, false);
  }

  /** What a startup probe found. */
  setContainerStartup(uid: PodUid, containerId: string, started: boolean): void {
    this.#editContainer(uid, containerId, (status) => {
      const isStarted = started && status.state?.running !== undefined;
      // Whether one that has just started is ready is for its readiness probe, or the next sync, to say.
      const ready = isStarted && status.ready;
      return status.started === isStarted ? undefined : { ...status, started: isStarted, ready };
    });
  }

  /** Once nothing of the pod is left: its last status, from which there is no way back. */
  terminatePod(pod: Pod): void {
    const status = this.#entries.get(pod.metadata.uid)?.status ?? pod.status;
    this.#update(pod, finalStatus(pod, status), 'final');
  }

  isFinished(uid: PodUid): boolean {
    return this.#entries.get(uid)?.isFinished === true;
  }

  /** Forgets pods that nobody knows any more. */
  removeOrphanedStatuses(known: ReadonlySet<PodUid>): void {
    for (const uid of this.#entries.keys()) if (!known.has(uid)) this.#entries.delete(uid);
  }

  forget(uid: PodUid): void {
    this.#entries.delete(uid);
  }

  /** A static pod is wanted, perhaps once more: how it ended before says nothing of it, and is told to nobody. */
  comesAgain(uid: PodUid): void {
    if (this.isFinished(uid)) this.forget(uid);
  }

  entry(uid: PodUid): VersionedStatus | undefined {
    return this.#entries.get(uid);
  }

  entries(): Iterable<VersionedStatus> {
    return this.#entries.values();
  }

  /** Called at once with every change; must be quick. */
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

  /** A static pod that has finished may come again under the same id: that is a new life, owing the old one nothing. */
  #keptOf(pod: Pod): VersionedStatus | undefined {
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

  /** The one door. */
  #update(pod: Pod, given: PodStatus, when: 'if-changed' | 'always' | 'final'): void {
    const { uid, name, namespace } = pod.metadata;
    const kept = when === 'final' ? this.#entries.get(uid) : this.#keptOf(pod);
    const before = kept?.status ?? pod.status;
    const restarted = forbiddenRestarts(pod, before, given);
    if (restarted.length > 0) {
      this.#refuse(pod, restarted);
      return;
    }
    const status = this.#settled(pod, before, given);
    const isFinished = when === 'final' || kept?.isFinished === true;
    if (kept !== undefined && when === 'if-changed' && sameStatus(kept.status, status)) return;
    const version = (this.#entries.get(uid)?.version ?? 0) + 1;
    const changedAtMs = this.#deps.clock.monotonicMs();
    this.#entries.set(uid, { uid, name, namespace, version, status, isFinished, changedAtMs });
    this.#events.emit('changed', { uid, pod, before: kept?.status, after: status, version, isFinished });
  }

  #refuse(pod: Pod, containers: readonly string[]): void {
    this.#deps.logger.warn('Refused a status in which containers come back that may not restart', {
      pod: describePod(pod),
      containers,
    });
  }

  /** Holds the status to what was published before: what is irrevocable, and what only a change may change. */
  #settled(pod: Pod, before: PodStatus, given: PodStatus): PodStatus {
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

/** A pod that has ended is not ready, however late its containers are told. */
function withFalseReadiness(pod: Pod, status: PodStatus): PodStatus {
  const isReady = ['Ready', 'ContainersReady'].some((type) => findCondition(status, type)?.status === 'True');
  return isTerminalPhase(status.phase) && isReady ? replaceReadiness(pod, status) : status;
}

function withTransitionTime(condition: PodCondition, before: PodStatus, now: string): PodCondition {
  // A resize keeps its own time: also of another reason.
  if (!isOurCondition(condition.type) || isResizeCondition(condition.type)) return condition;
  const old = findCondition(before, condition.type);
  const isKept = old?.status === condition.status && old.lastTransitionTime !== undefined;
  const observedGeneration = highest(old?.observedGeneration, condition.observedGeneration);
  return { ...condition, observedGeneration, lastTransitionTime: isKept ? old.lastTransitionTime : now };
}

function highest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

/**
 * The last status of a pod, once nothing of it is left. A container whose end nobody saw has failed: success must be
 * seen. Regular containers of a pod that never got through initialization stay waiting, for they never ran.
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

/** Whether anything shows that regular containers could start. */
function hasInitialized(pod: Pod, status: PodStatus): boolean {
  const containers = initContainersOf(pod);
  if (containers.length === 0 || (status.containerStatuses ?? []).some(hasLeftWaiting)) return true;
  const last = status.initContainerStatuses?.at(-1);
  const container = containers.find(({ name }) => name === last?.name);
  if (last === undefined || container === undefined) return false;
  if (isSidecar(container)) return last.state?.running !== undefined && last.started === true;
  return last.state?.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0;
}

function hasLeftWaiting({ state, lastState }: ContainerStatus): boolean {
  return (
    lastState?.terminated !== undefined || state?.running !== undefined || state?.terminated !== undefined
  );
}

/** How many init containers, from the first, are at or before the last that shows signs of a start; at least one. */
function startedInits(statuses: readonly ContainerStatus[]): number {
  return Math.max(1, statuses.findLastIndex(hasLeftWaiting) + 1);
}

/**
 * The containers that would leave the terminated state although their restart rules forbid it: a contradiction that
 * must not be published. None for a sound change, and none in a pod that always restarts: whatever its init containers
 * say for themselves, they come back with a new sandbox.
 */
export function forbiddenRestarts(pod: Pod, before: PodStatus, after: PodStatus): readonly string[] {
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
    const old = before.find(({ name }) => name === container.name);
    const ended = old?.state?.terminated;
    const now = after.find(({ name }) => name === container.name);
    if (ended === undefined || now === undefined || now.state?.terminated !== undefined) return false;
    return !wasAssumed(ended) && !restartsAfterExit(pod, container, ended.exitCode);
  });
  return back.map(({ name }) => name);
}

/** What was lost from sight may be found again, and is started anew by every policy: what is seen goes before it. */
function wasAssumed({ reason }: NonNullable<ContainerState['terminated']>): boolean {
  return reason === statusUnknown;
}
