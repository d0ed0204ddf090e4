import type { Image } from '../../cri/index.ts';
import type { Container, EphemeralContainer } from '../../kinds/index.ts';
import { describeError, type Logger } from '../../lib/index.ts';
import {
  describePod,
  ephemeralContainersOf,
  findNamed,
  initContainersOf,
  isSidecar,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodAllocation,
  type PodJournal,
} from '../../pods/index.ts';
import type { ContainerStart } from '../containers/container-creator.ts';
import type { ContainerRemover } from '../containers/container-deletor.ts';
import type { ContainerStarter } from '../containers/container-starter.ts';
import { restoreContainer } from '../containers/labels.ts';
import type { HookCheckpoint } from '../hooks/lifecycle-hooks.ts';
import type { PostStartHooks } from '../hooks/post-start.ts';
import type { ImageManager } from '../images/image-manager.ts';
import type { ContainerKill, PodKiller } from '../kill/pod-killer.ts';
import { containerTypeOf, type StartObserver } from '../metrics.ts';
import type { PlanContext, PodActions } from '../plan/pod-actions.ts';
import type { PodPlanner } from '../plan/pod-planner.ts';
import { type ActuatedResources, actuatedOf } from '../resize/actuated-resources.ts';
import type { PodResizer } from '../resize/pod-resizer.ts';
import type { ReadySandbox, SandboxStarter } from '../sandbox/sandbox-starter.ts';
import type { StartOutcome } from './reason-cache.ts';
import {
  type ActionFailure,
  earliestBackoffExpiryMs,
  errorOf,
  type SyncAction,
  type SyncPodResult,
} from './sync-result.ts';

export interface SyncPodRequest {
  readonly pod: Pod;
  /**
   * The pod's sandboxes and containers, as read from the runtime after the previous sync of the
   * pod.
   */
  readonly observed: ObservedPod;
  readonly context: PlanContext;
  /**
   * Called when the new sandbox has its network, before images are pulled: with the current
   * sandboxes and containers of the pod, and the ids of stopped containers. Must not throw.
   */
  readonly sandboxReady?: ((now: ObservedPod, stopped: ReadonlySet<string>) => void) | undefined;
}

export interface PodSyncDeps {
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly planner: PodPlanner;
  readonly killer: PodKiller;
  readonly remover: ContainerRemover;
  readonly sandboxes: SandboxStarter;
  readonly containers: ContainerStarter;
  readonly images: Pick<ImageManager, 'inspectAhead'>;
  readonly startObserver: StartObserver;
  readonly postStart: PostStartHooks;
  readonly hookCheckpoint: HookCheckpoint;
  readonly actuated: ActuatedResources;
  readonly resizer: PodResizer;
}

/** Executes one sync of one pod: stops containers, creates the sandbox, and starts containers. */
export class PodSync {
  readonly #deps: PodSyncDeps;
  readonly #request: SyncPodRequest;
  readonly #actuated: PodAllocation | undefined;
  readonly #plan: PodActions;
  readonly #actions: SyncAction[] = [];
  readonly #starts: StartOutcome[] = [];
  readonly #inspectedImages = new Map<string, Image>();
  readonly #stopped = new Set<string>();
  readonly #removed = new Set<string>();

  constructor(deps: PodSyncDeps, request: SyncPodRequest) {
    this.#deps = deps;
    this.#request = request;
    const { pod, observed, context } = request;
    const actuated = actuatedOf(pod, observed, deps.actuated.get(pod.metadata.uid));
    this.#actuated = actuated;
    this.#plan = deps.planner.computePodActions(pod, observed, { ...context, actuated });
  }

  /** Results of the container starts so far, available for a cancelled sync too. */
  get starts(): readonly StartOutcome[] {
    return this.#starts;
  }

  /**
   * Stops containers, creates the sandbox if needed, and starts containers in order. Returns
   * failures in the result; rejects only when the signal is aborted.
   */
  async run(signal: AbortSignal): Promise<SyncPodResult> {
    const mayStart = this.#plan.killPod ? await this.#killPod(signal) : await this.#killContainers(signal);
    if (mayStart) {
      await this.#pruneInitContainers(signal);
      await this.#resumePostStarts(signal);
      await this.#resize(signal);
      await this.#startAll(signal);
    }
    return this.#result();
  }

  async #killPod(signal: AbortSignal): Promise<boolean> {
    const { pod, observed } = this.#request;
    const { createSandbox, sandboxId } = this.#plan;
    if (createSandbox && sandboxId !== '') {
      const message = 'Pod sandbox changed, it will be killed and re-created.';
      this.#deps.journal.event(pod, { type: 'Normal', reason: 'SandboxChanged', message });
    }
    const { actions, error } = await this.#deps.killer.killPod({ pod, running: observed }, signal);
    this.#actions.push(...actions);
    for (const { id } of observed.containers) this.#stopped.add(id);
    if (error !== undefined || !createSandbox) return false;
    // Old instances are removed, because all init containers run again in a new sandbox.
    await this.#removeAll(this.#initInstances(), signal);
    return true;
  }

  async #killContainers(signal: AbortSignal): Promise<boolean> {
    const { pod } = this.#request;
    for (const kill of [...this.#plan.containersToKill.values(), ...this.#partlyStopped()]) {
      const { id } = kill;
      const action = await this.#deps.killer.killContainer(pod, kill, signal);
      this.#actions.push(action);
      if (action.failure !== undefined) return false;
      this.#stopped.add(id);
    }
    if (this.#plan.containersToReset.length === 0) return true;
    await this.#reset(signal);
    return false;
  }

  /**
   * Containers whose preStop hook was started by a previous kubelet: they must be stopped, whatever
   * the reason for stopping was.
   */
  #partlyStopped(): readonly ContainerKill[] {
    const { pod, observed } = this.#request;
    const { containersToKill: planned } = this.#plan;
    return observed.containers
      .filter(
        ({ id, state }) =>
          state === 'running' && !planned.has(id) && this.#deps.killer.hasStartedPreStop(pod, id),
      )
      .map((one) => ({ id: one.id, name: one.name, container: restoreContainer(one), reason: 'Unknown' }));
  }

  /** Removes all containers for RestartAllContainers; stops at the first failure. */
  async #reset(signal: AbortSignal): Promise<void> {
    const { pod } = this.#request;
    for (const { id, container, stopFirst } of this.#plan.containersToReset) {
      const { name } = container;
      if (stopFirst) {
        const kill = {
          id,
          name,
          message: 'killing',
          reason: 'RestartAllContainers',
          graceSeconds: 0,
        } as const;
        const stopped = await this.#deps.killer.killContainer(pod, kill, signal);
        this.#actions.push(stopped);
        if (stopped.failure !== undefined) return;
      }
      const removed = await this.#remove(id, name, 'keep-logs', signal);
      this.#actions.push(removed);
      if (removed.failure !== undefined) return;
    }
  }

  /** Keeps only the newest exited instance of each init container. */
  async #pruneInitContainers(signal: AbortSignal): Promise<void> {
    const ended = this.#initInstances().filter(({ state }) => state === 'exited' || state === 'unknown');
    const surplus = ended.filter((instance) => instance !== findNamed(ended, instance.name));
    await this.#removeAll(surplus, signal);
  }

  #initInstances(): readonly ObservedContainer[] {
    const { pod, observed } = this.#request;
    const names = new Set(initContainersOf(pod).map(({ name }) => name));
    return observed.containers.filter(({ name, id }) => names.has(name) && !this.#removed.has(id));
  }

  /** Removes containers; those whose removal fails are left to garbage collection. */
  async #removeAll(containers: readonly ObservedContainer[], signal: AbortSignal): Promise<void> {
    for (const { id, name } of containers) {
      const removed = await this.#remove(id, name, 'with-logs', signal);
      if (removed.failure === undefined) this.#actions.push(removed);
    }
  }

  async #remove(
    id: string,
    name: string,
    logs: 'with-logs' | 'keep-logs',
    signal: AbortSignal,
  ): Promise<SyncAction> {
    const action: SyncAction = { action: 'RemoveContainer', target: name };
    try {
      await this.#deps.remover.remove(id, logs, signal);
      this.#removed.add(id);
      return action;
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.error('Failed to remove container', error, {
        pod: describePod(this.#request.pod),
        container: name,
        id,
      });
      return { ...action, failure: { reason: 'RemoveContainerError', message: describeError(error) } };
    }
  }

  /** Runs postStart hooks that a previous kubelet left pending, before any container is started. */
  async #resumePostStarts(signal: AbortSignal): Promise<void> {
    for (const due of this.#deps.hookCheckpoint.pendingPostStarts(this.#request.pod.metadata.uid)) {
      if (!this.#stopped.has(due)) await this.#resumePostStart(due, signal);
    }
  }

  async #resumePostStart(due: string, signal: AbortSignal): Promise<void> {
    const { pod, observed } = this.#request;
    const found = observed.containers.find(({ id }) => id === due);
    if (found?.state === 'exited') return await this.#deps.hookCheckpoint.clearPostStart(pod, due);
    const all = [...initContainersOf(pod), ...pod.spec.containers];
    const container = all.find(({ name }) => name === found?.name);
    if (container === undefined || found?.state !== 'running') return;
    const failure = await this.#deps.postStart.run({ pod, container, id: due }, signal);
    if (failure !== undefined) this.#stopped.add(due);
    this.#recordStart(container.name, failure);
  }

  /** Resizes containers; a failed resize does not prevent other containers from starting. */
  async #resize(signal: AbortSignal): Promise<void> {
    const { resize: plan, createSandbox, sandboxId } = this.#plan;
    const { pod, observed } = this.#request;
    const confirmed = await this.#deps.resizer.reapplyUnconfirmed(pod, observed, signal);
    if (confirmed !== undefined) this.#actions.push(confirmed);
    if (plan === undefined || this.#actuated === undefined) return;
    const request = { pod, plan, sandboxId: createSandbox ? '' : sandboxId, actuated: this.#actuated };
    this.#actions.push(await this.#deps.resizer.resize(request, signal));
  }

  async #startAll(signal: AbortSignal): Promise<void> {
    const { pod } = this.#request;
    const ephemeral = pick(ephemeralContainersOf(pod), this.#plan.ephemeralContainersToStart);
    const init = pick(initContainersOf(pod), this.#plan.initContainersToStart);
    const regular = pick(pod.spec.containers, this.#plan.containersToStart);
    if (!this.#plan.createSandbox && ephemeral.length + init.length + regular.length === 0) return;
    const ahead = this.#inspectImageAhead(init[0] ?? regular[0], signal);
    const sandbox = await this.#sandbox(signal);
    await ahead;
    if (sandbox === undefined) return;
    for (const container of ephemeral) await this.#start(container, sandbox, signal);
    for (const container of init) {
      const started = await this.#start(container, sandbox, signal);
      if (!started && !isSidecar(container)) return;
    }
    for (const [index, container] of regular.entries()) {
      const next = regular[index + 1];
      const created = next === undefined ? undefined : () => this.#prepare(next, sandbox, signal);
      await this.#start(container, sandbox, signal, created);
    }
  }

  async #inspectImageAhead(container: Container | undefined, signal: AbortSignal): Promise<void> {
    if (container === undefined || !this.#plan.createSandbox) return;
    const { name, image = '', imagePullPolicy: pullPolicy } = container;
    const request = {
      pod: this.#request.pod,
      container: { name, image, pullPolicy },
      inspected: this.#inspectedImages,
    };
    await this.#deps.images.inspectAhead(request, signal);
  }

  /** Creates the next regular container while the runtime starts the previous container. */
  #prepare(container: Container, sandbox: ReadySandbox, signal: AbortSignal): void {
    this.#deps.containers.prepare(this.#startOf(container, sandbox), () => !signal.aborted, signal);
  }

  #startOf(container: Container | EphemeralContainer, sandbox: ReadySandbox): ContainerStart {
    const { pod, observed } = this.#request;
    return {
      pod,
      container,
      observed,
      sandbox,
      inspectedImages: this.#inspectedImages,
      stopped: this.#stopped,
    };
  }

  /** Returns the current sandbox or a new one; undefined when no sandbox can be created. */
  async #sandbox(signal: AbortSignal): Promise<ReadySandbox | undefined> {
    const { pod, observed, sandboxReady } = this.#request;
    const { createSandbox, sandboxId, attempt } = this.#plan;
    if (!createSandbox) return await this.#existingSandbox(sandboxId, attempt, signal);
    this.#deps.startObserver.sandboxStarting();
    const started = await this.#deps.sandboxes.start(pod, attempt, signal);
    if (!started.ok) this.#deps.startObserver.sandboxFailed();
    const action: SyncAction = { action: 'CreatePodSandbox', target: describePod(pod) };
    this.#actions.push(started.ok ? action : { ...action, failure: started.failure });
    if (!started.ok) return undefined;
    const { sandbox, seen } = started;
    const now = { ...observed, ips: sandbox.ips, sandboxes: [seen, ...observed.sandboxes] };
    sandboxReady?.(now, this.#stopped);
    return sandbox;
  }

  async #existingSandbox(
    id: string,
    attempt: number,
    signal: AbortSignal,
  ): Promise<ReadySandbox | undefined> {
    const { pod, observed } = this.#request;
    try {
      const { config } = await this.#deps.planner.sandboxPlan(pod, attempt, signal);
      return { id, config, ips: observed.ips };
    } catch (error) {
      signal.throwIfAborted();
      const failure = { reason: 'ConfigPodSandboxError', message: describeError(error) };
      this.#actions.push({ action: 'ConfigPodSandbox', target: describePod(pod), failure });
      return undefined;
    }
  }

  async #start(
    container: Container | EphemeralContainer,
    sandbox: ReadySandbox,
    signal: AbortSignal,
    created?: () => void,
  ): Promise<boolean> {
    const { name } = container;
    const start = { ...this.#startOf(container, sandbox), created };
    const failure = await this.#deps.containers.start(start, signal);
    this.#countStart(name, failure?.reason);
    this.#recordStart(name, failure);
    return failure === undefined;
  }

  #recordStart(name: string, failure: ActionFailure | undefined): void {
    const action: SyncAction = { action: 'StartContainer', target: name };
    this.#actions.push(failure === undefined ? action : { ...action, failure });
    this.#starts.push(
      failure === undefined
        ? { container: name, started: true }
        : { container: name, started: false, reason: failure.reason, message: failure.message },
    );
  }

  /**
   * Records the start of a container; a container whose start is delayed by back-off does not count
   * as started.
   */
  #countStart(name: string, failure: string | undefined): void {
    if (failure === 'CrashLoopBackOff') return;
    const { startObserver } = this.#deps;
    const type = containerTypeOf(this.#request.pod, name);
    startObserver.containerStarting(type);
    if (failure !== undefined) startObserver.containerFailed(type, failure);
  }

  #result(): SyncPodResult {
    const actions = this.#actions;
    const error = errorOf('POD_SYNC', actions);
    const expiryMs = earliestBackoffExpiryMs(actions);
    return {
      actions,
      starts: this.#starts,
      stopped: this.#stopped,
      ...(error === undefined ? {} : { error }),
      ...(expiryMs === undefined ? {} : { earliestBackoffExpiryMs: expiryMs }),
    };
  }
}

function pick<T>(all: readonly T[], indexes: readonly number[]): readonly T[] {
  return indexes.flatMap((index) => all[index] ?? []);
}
