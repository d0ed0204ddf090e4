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
import { containerLogLink } from '../logs/log-paths.ts';
import type { CrashBackoff, RestartDelay } from '../plan/crash-backoff.ts';
import { type CreatedContainer, type Prepared, RestartPreparations } from '../plan/restart-preparation.ts';
import {
  type ActuatedResources,
  recordActuatedStart,
  reportedResources,
} from '../resize/actuated-resources.ts';
import type { ActionFailure } from '../sync/sync-result.ts';
import { mayHaveTakenEffect } from '../sync/unknown-outcome.ts';
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
/**
 * How long to wait for the response of a cancelled StartContainer call, because the runtime may
 * start the container although the sync was cancelled.
 */
const startOutlastsMs = 2_000;

/**
 * Starts a container: creates it unless a created instance exists, calls StartContainer and runs
 * the postStart hook.
 */
export class ContainerStarter {
  readonly #deps: ContainerStarterDeps;
  /**
   * The IDs of containers for which StartContainer failed; they are replaced, not started again.
   */
  readonly #failedStarts = new LruMap<string, true>({ capacity: maxFailedStarts });
  /** The containers that were created in advance for a restart that is expected soon. */
  readonly preparations = new RestartPreparations();
  readonly #recorder: StartRecorder;
  readonly #creator: ContainerCreator;

  constructor(deps: ContainerStarterDeps) {
    this.#deps = deps;
    this.#recorder = new StartRecorder(deps.journal);
    this.#creator = new ContainerCreator({ ...deps, recorder: this.#recorder });
  }

  /**
   * Creates the container for a later call of `start`, if the back-off of the container has
   * expired. `mayCreate` is called right before CreateContainer. If the creation fails, the later
   * `start` reports the error.
   */
  prepare(start: ContainerStart, mayCreate: () => boolean, signal: AbortSignal): void {
    const { uid } = start.pod.metadata;
    if (this.#reusableInstance(start) !== undefined || this.#delay(start).kind === 'wait') return;
    const key = { uid, name: start.container.name, fits: preparationKey(start) };
    this.preparations.begin(key, (inner) => this.#creator.create(start, mayCreate, inner), signal);
  }

  /**
   * Starts the container; returns why it does not run, or undefined when it runs. Rejects only when
   * the signal is aborted.
   */
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
   * Removes the newer instance, which was only created, if an older instance may still run: a
   * StartContainer call with unknown outcome may have started the older instance, and starting the
   * newer one would run the container twice.
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

  /**
   * Returns the container that was created in advance when the runtime announced the exit of the
   * previous instance.
   */
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

  /**
   * Finds a container that an earlier sync created but did not start, because the sync was
   * cancelled or the kubelet exited.
   */
  #reusableInstance({ pod, observed, container, sandbox }: ContainerStart): CreatedContainer | undefined {
    const newest = newestInstance(observed, container.name);
    const usable =
      newest?.state === 'created' &&
      // The runtime reports a finish time for an instance whose start was cancelled; such an
      // instance must be removed.
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
    const isRecorded = isOnlyStart(pod, container);
    if (isRecorded) await startCheckpoint.recordStart(pod, id);
    const begin = (inner: AbortSignal) => cri.startContainer({ containerId: id }, inner);
    signal.throwIfAborted();
    try {
      await withAbortGrace({ clock, ms: () => startOutlastsMs }, begin, signal);
      if (isRecorded) await startCheckpoint.clearStart(pod, id);
    } catch (error) {
      signal.throwIfAborted();
      if (!(await this.#hasStarted(id, error, signal))) {
        // Keeps an instance whose start may still succeed: with a second instance, the container
        // could run twice.
        if (!mayHaveTakenEffect(error)) {
          this.#failedStarts.set(id, true);
          if (isRecorded) await startCheckpoint.clearStart(pod, id);
        }
        throw this.#recorder.failed(start, 'RunContainerError', error, id);
      }
    }
    this.#recorder.event(start, { type: 'Normal', reason: 'Started', text: 'Container started' });
    await this.#linkLog(start, id, logPath);
  }

  /** Whether the container is running or ran although StartContainer reported an error. */
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

  /**
   * Creates the symlink by which log collectors find the log. Skipped when the log is missing; a
   * failure is only logged.
   */
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
      logger.error('Failed to link container log', error, { pod: describePod(pod), link });
    }
  }

  #unexpected(start: ContainerStart, error: unknown): ActionFailure {
    const { pod, container } = start;
    this.#deps.logger.error('Failed to start container', error, {
      pod: describePod(pod),
      container: container.name,
    });
    return this.#recorder.failed(start, 'CreateContainerError', error).failure;
  }
}

/**
 * Identifies what a container is created for: sandbox, spec hash and resources. A container that
 * was created in advance is started only if its key is still the same.
 */
function preparationKey({
  pod,
  container,
  sandbox,
}: Pick<ContainerStart, 'pod' | 'container' | 'sandbox'>): string {
  return `${sandbox.id} ${specHash(container)} ${JSON.stringify(effectiveResources(pod, container))}`;
}
