import type { CriClient } from '../../cri/index.ts';
import { isKind, LruMap, withAbortGrace } from '../../lib/index.ts';
import {
  describePod,
  effectiveResources,
  newestInstance,
  type PodJournal,
  sameResources,
} from '../../pods/index.ts';
import type { PostStartHooks } from '../hooks/post-start.ts';
import { mayHaveTakenEffect } from '../kill/unknown-outcome.ts';
import { containerLogLink } from '../logs/log-paths.ts';
import type { CrashBackoff, RestartDelay } from '../plan/crash-backoff.ts';
import { type CreatedContainer, type Prepared, RestartPreparations } from '../plan/restart-preparation.ts';
import {
  type ActuatedResources,
  recordActuatedStart,
  reportedResources,
} from '../resize/actuated-resources.ts';
import type { ActionFailure } from '../sync/sync-result.ts';
import {
  ContainerCreator,
  type ContainerCreatorDeps,
  type ContainerStart,
  StartFailure,
  StartRecorder,
} from './container-creator.ts';
import { specHash } from './spec-hash.ts';
import { isOnlyStart, type StartCheckpoint } from './start-checkpoint.ts';

export interface ContainerStarterDeps extends Omit<ContainerCreatorDeps, 'recorder'> {
  readonly cri: ContainerCreatorDeps['cri'] & Pick<CriClient, 'startContainer' | 'containerStatus'>;
  readonly journal: PodJournal;
  readonly crashBackoff: CrashBackoff;
  readonly postStart: PostStartHooks;
  readonly logLinksDir: string;
  readonly startCheckpoint: StartCheckpoint;
  readonly actuated: ActuatedResources;
}

const maxFailedStarts = 1_000;
/** A start that is given up half way may come to run behind the back of whoever stops the pod: it is waited for a while. */
const startOutlastsMs = 2_000;

/** Brings one container of a pod to run: makes it unless that is done, starts it, runs its hook. */
export class ContainerStarter {
  readonly #deps: ContainerStarterDeps;
  /** Containers whose start the runtime refused: to try those again is in vain. */
  readonly #failedStarts = new LruMap<string, true>({ capacity: maxFailedStarts });
  /** Containers that are created ahead of their start. */
  readonly preparations = new RestartPreparations();
  readonly #recorder: StartRecorder;
  readonly #creator: ContainerCreator;

  constructor(deps: ContainerStarterDeps) {
    this.#deps = deps;
    this.#recorder = new StartRecorder(deps.journal);
    this.#creator = new ContainerCreator({ ...deps, recorder: this.#recorder });
  }

  /**
   * Makes the container that a later `start` will need, unless it would have to wait for its back-off. `mayCreate` is
   * asked right before. What goes wrong, that start will meet again and tell.
   */
  prepare(start: ContainerStart, mayCreate: () => boolean, signal: AbortSignal): void {
    const { uid } = start.pod.metadata;
    if (this.#reusableInstance(start) !== undefined || this.#delay(start).kind === 'wait') return;
    const key = { uid, name: start.container.name, fits: preparationKey(start) };
    this.preparations.begin(key, (inner) => this.#creator.create(start, mayCreate, inner), signal);
  }

  /** Answers why it does not run, or undefined when it does. Rejects only when the signal is aborted. */
  async start(start: ContainerStart, signal: AbortSignal): Promise<ActionFailure | undefined> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    try {
      const prepared = await this.#takePreparation(start, signal);
      if (await this.#isAlreadyRunning(start, signal)) {
        await this.#discard(prepared, signal);
        return undefined;
      }
      this.#checkBackoff(start);
      const made =
        (await this.#usePrepared(prepared, signal)) ??
        this.#reusableInstance(start) ??
        (await this.#creator.create(start, () => true, signal));
      start.created?.();
      await this.#startContainer(start, made, signal);
      const message = `Started container ${start.container.name}`;
      this.#recorder.step(start, 'done', message, clock.monotonicMs() - startMs);
      const failure = await this.#deps.postStart.run({ ...start, id: made.id }, signal);
      if (failure !== undefined) throw new StartFailure(failure);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const failure = error instanceof StartFailure ? error.failure : this.#unexpected(start, error);
      const outcome = failure.retryAtMs === undefined ? 'failed' : 'waiting';
      this.#recorder.step(start, outcome, `${failure.reason}: ${failure.message}`);
      return failure;
    }
  }

  /**
   * An instance that runs while the plan sees a newer one that does not: the newer one was made by a call we had given
   * up on. It is in the way, and starting it would run the container twice.
   */
  async #isAlreadyRunning(
    { observed, container, stopped }: ContainerStart,
    signal: AbortSignal,
  ): Promise<boolean> {
    const instances = observed.containers.filter(({ name }) => name === container.name);
    const running = instances.findIndex(({ state, id }) => state === 'running' && !stopped.has(id));
    if (running < 0) return false;
    for (const { id, state } of instances.slice(0, running)) {
      if (state === 'created') await this.#deps.remover.remove(id, 'keep-logs', signal);
    }
    return true;
  }

  #delay({ pod, container, observed }: ContainerStart): RestartDelay {
    const { crashBackoff, clock } = this.#deps;
    const moment = { nowMs: clock.now(), monotonicMs: clock.monotonicMs() };
    return crashBackoff.restartDelay(pod, container, observed, moment);
  }

  #checkBackoff(start: ContainerStart): void {
    const { clock } = this.#deps;
    const delay = this.#delay(start);
    if (delay.kind === 'go') return;
    this.#recorder.event(start, { type: 'Warning', reason: 'BackOff', text: delay.eventMessage });
    throw new StartFailure({
      reason: 'CrashLoopBackOff',
      message: delay.message,
      retryAtMs: clock.monotonicMs() + delay.waitMs,
    });
  }

  /** What was made for just this start when the end of the instance before it was announced. */
  async #takePreparation(start: ContainerStart, signal: AbortSignal): Promise<Prepared> {
    const { uid } = start.pod.metadata;
    const prepared = await this.preparations.take(uid, start.container.name, preparationKey(start), signal);
    signal.throwIfAborted();
    return prepared;
  }

  async #usePrepared(prepared: Prepared, signal: AbortSignal): Promise<CreatedContainer | undefined> {
    if (prepared.kind === 'failed') throw prepared.error;
    if (prepared.kind === 'use') return prepared.made;
    await this.#discard(prepared, signal);
    return undefined;
  }

  async #discard(prepared: Prepared, signal: AbortSignal): Promise<void> {
    if ('made' in prepared) await this.#deps.remover.remove(prepared.made.id, 'keep-logs', signal);
  }

  /** One that an earlier sync made and could not start any more, because kubeling ended or gave up in between. */
  #reusableInstance({ pod, observed, container, sandbox }: ContainerStart): CreatedContainer | undefined {
    const newest = newestInstance(observed, container.name);
    const usable =
      newest?.state === 'created' &&
      // One whose start was given up is there to be removed.
      newest.finishedAtNs <= 0n &&
      newest.sandboxId === sandbox.id &&
      newest.hash === specHash(container) &&
      sameResources(reportedResources(pod, container, newest), effectiveResources(pod, container)) &&
      !this.#failedStarts.has(newest.id);
    return usable ? { id: newest.id, logPath: newest.logPath } : undefined;
  }

  async #startContainer(
    start: ContainerStart,
    { id, logPath }: CreatedContainer,
    signal: AbortSignal,
  ): Promise<void> {
    const { pod, container, observed } = start;
    const { crashBackoff, clock, startCheckpoint, postStart, cri } = this.#deps;
    await crashBackoff.recordRestart(pod, container, observed, clock.now());
    await postStart.record({ pod, container, id });
    await recordActuatedStart(this.#deps.actuated, pod, container);
    const isNoted = isOnlyStart(pod, container);
    if (isNoted) await startCheckpoint.recordStart(pod, id);
    const begin = (inner: AbortSignal) => cri.startContainer({ containerId: id }, inner);
    signal.throwIfAborted();
    try {
      await withAbortGrace({ clock, ms: () => startOutlastsMs }, begin, signal);
      if (isNoted) await startCheckpoint.clearStart(pod, id);
    } catch (error) {
      signal.throwIfAborted();
      if (!(await this.#hasStarted(id, error, signal))) {
        // One that may yet start must stay the one to start: another beside it could come to run at the same time.
        if (!mayHaveTakenEffect(error)) {
          this.#failedStarts.set(id, true);
          if (isNoted) await startCheckpoint.clearStart(pod, id);
        }
        throw this.#recorder.failed(start, 'RunContainerError', error, id);
      }
    }
    this.#recorder.event(start, { type: 'Normal', reason: 'Started', text: 'Container started' });
    await this.#linkLog(start, id, logPath);
  }

  /** Whether the container runs, or ran, though its start seemed to fail. */
  async #hasStarted(containerId: string, error: unknown, signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#deps.cri.containerStatus({ containerId }, signal);
      if (status?.state === 'CONTAINER_RUNNING') return true;
      return status?.state === 'CONTAINER_EXITED' && isKind(error, 'Unavailable', 'DeadlineExceeded');
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  /** For log collectors. A link to nothing would only be garbage, and none is no reason to fail. */
  async #linkLog({ pod, container }: ContainerStart, containerId: string, logPath: string): Promise<void> {
    const { files, logger, logLinksDir } = this.#deps;
    const { name: podName, namespace } = pod.metadata;
    const link = containerLogLink(logLinksDir, {
      podName,
      namespace,
      containerName: container.name,
      containerId,
    });
    try {
      if (logPath !== '' && (await files.exists(logPath))) await files.link(logPath, link);
    } catch (error) {
      logger.error('Cannot link the log of a container', error, { pod: describePod(pod), link });
    }
  }

  #unexpected(start: ContainerStart, error: unknown): ActionFailure {
    const { pod, container } = start;
    this.#deps.logger.error('Cannot start a container', error, {
      pod: describePod(pod),
      container: container.name,
    });
    return this.#recorder.failed(start, 'CreateContainerError', error).failure;
  }
}

/** What a container is made for: one that was made for anything else is of no use. */
function preparationKey({
  pod,
  container,
  sandbox,
}: Pick<ContainerStart, 'pod' | 'container' | 'sandbox'>): string {
  return `${sandbox.id} ${specHash(container)} ${JSON.stringify(effectiveResources(pod, container))}`;
}
