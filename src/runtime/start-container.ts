import { posix } from 'node:path';
import type { CriClient, Container as CriContainer, Image } from '../cri/index.ts';
import type { Container, EphemeralContainer } from '../kinds/index.ts';
import { type Clock, describeError, isKind, KubelingError, type Logger, LruMap } from '../lib/index.ts';
import {
  containerFieldPath,
  describePod,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodEvent,
  type PodJournal,
  type PodUid,
} from '../pods/index.ts';
import { readContainerAnnotations } from './container-annotations.ts';
import type { ContainerRemover } from './container-remover.ts';
import type { CrashBackoff, RestartDelay } from './crash-backoff.ts';
import type { PostStart } from './hooks/post-start.ts';
import type { ImageFacts, ImageManager } from './image-manager.ts';
import { explainRefusal, imageVolumesOf } from './image-volumes.ts';
import { labels } from './labels.ts';
import { containerLogLink, restartCountFromLogs } from './log-paths.ts';
import type { MountableImage } from './mounts.ts';
import type { ContainerPlan, PodPlanner } from './pod-planner.ts';
import { type MadeContainer, Preparations, type Prepared } from './restart-ahead.ts';
import type { RuntimeFiles } from './runtime-files.ts';
import { specHash } from './spec-hash.ts';
import { isOnlyStart, type StartNotes } from './start-notes.ts';
import type { ReadySandbox } from './start-sandbox.ts';
import type { ActionFailure } from './sync-result.ts';
import { isNameTaken, lookAfter, mayHaveHappened } from './unknown-outcome.ts';

export interface ContainerStarterDeps {
  readonly cri: Pick<CriClient, 'createContainer' | 'startContainer' | 'containerStatus' | 'listContainers'>;
  readonly clock: Clock;
  readonly files: RuntimeFiles;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly planner: PodPlanner;
  readonly images: ImageManager;
  readonly crashBackoff: CrashBackoff;
  readonly remover: ContainerRemover;
  readonly postStart: PostStart;
  readonly logLinksDir: string;
  readonly startNotes: StartNotes;
}

export interface ContainerStart {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly observed: ObservedPod;
  readonly sandbox: ReadySandbox;
  /** Images this sync has looked at already. */
  readonly seenImages: Map<string, Image>;
  /** Containers this sync has stopped: the observation still has them running. */
  readonly stopped: ReadonlySet<string>;
  /** Called when it is made and about to be started. */
  readonly made?: (() => void) | undefined;
}

/** The images a container is made of, once they are there. */
interface StartImages {
  readonly own: ImageFacts;
  /** By the volume's name. */
  readonly volumes: ReadonlyMap<string, MountableImage>;
}

interface WantedImage {
  readonly image: string;
  readonly pullPolicy: string | undefined;
  readonly fieldPath: string | undefined;
}

/** Ends a start with the reason its status shows. */
class StartFailure extends Error {
  readonly failure: ActionFailure;

  constructor(failure: ActionFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

const logDirectoryMode = 0o755;
const mostSkips = 2;
const rememberedFailures = 1_000;

/** Brings one container of a pod to run: image, config, creation, start, hook. */
export class ContainerStarter {
  readonly #deps: ContainerStarterDeps;
  /** Containers whose start the runtime refused: to try those again is in vain. */
  readonly #refused = new LruMap<string, true>({ capacity: rememberedFailures });
  readonly #preparations = new Preparations();

  constructor(deps: ContainerStarterDeps) {
    this.#deps = deps;
  }

  /** How many containers are made, or being made, ahead of their start. */
  get preparing(): number {
    return this.#preparations.size;
  }

  /**
   * Makes the container that a later `start` will need, unless it would have to wait for its back-off. `mayMake` is
   * asked right before. What goes wrong, that start will meet again and tell.
   */
  prepare(start: ContainerStart, mayMake: () => boolean, signal: AbortSignal): void {
    const { uid } = start.pod.metadata;
    if (this.#madeBefore(start) !== undefined || this.#delay(start).kind === 'wait') return;
    const key = { uid, name: start.container.name, fits: fitOf(start) };
    this.#preparations.begin(key, (inner) => this.#make(start, inner, mayMake), signal);
  }

  /** The pod ends: nothing of it is made ahead any more. */
  async giveUpPreparations(uid: PodUid): Promise<void> {
    await this.#preparations.giveUp(uid);
  }

  /** Answers why it does not run, or undefined when it does. Rejects only when the signal is aborted. */
  async start(start: ContainerStart, signal: AbortSignal): Promise<ActionFailure | undefined> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    try {
      const prepared = await this.#prepared(start, signal);
      if (await this.#runsAlready(start, signal)) {
        await this.#discard(prepared, signal);
        return undefined;
      }
      this.#checkBackoff(start);
      const made =
        (await this.#use(prepared, signal)) ?? this.#madeBefore(start) ?? (await this.#make(start, signal));
      start.made?.();
      await this.#run(start, made, signal);
      const message = `Started container ${start.container.name}`;
      this.#step(start, 'done', message, clock.monotonicMs() - startMs);
      const failure = await this.#deps.postStart.run({ ...start, id: made.id }, signal);
      if (failure !== undefined) throw new StartFailure(failure);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const failure = error instanceof StartFailure ? error.failure : this.#unexpected(start, error);
      const outcome = failure.retryAtMs === undefined ? 'failed' : 'waiting';
      this.#step(start, outcome, `${failure.reason}: ${failure.message}`);
      return failure;
    }
  }

  /**
   * An instance that runs while the plan sees a newer one that does not: the newer one was made by a call we had given
   * up on. It is in the way, and starting it would run the container twice.
   */
  async #runsAlready(
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
    const { pod, container } = start;
    const { clock } = this.#deps;
    const delay = this.#delay(start);
    if (delay.kind === 'go') return;
    this.#event(pod, container, 'Warning', 'BackOff', delay.eventMessage);
    throw new StartFailure({
      reason: 'CrashLoopBackOff',
      message: delay.message,
      retryAtMs: clock.monotonicMs() + delay.waitMs,
    });
  }

  /** What was made for just this start when the end of the instance before it was announced. */
  async #prepared({ pod, ...start }: ContainerStart, signal: AbortSignal): Promise<Prepared> {
    const { uid } = pod.metadata;
    const prepared = await this.#preparations.take(uid, start.container.name, fitOf(start), signal);
    signal.throwIfAborted();
    return prepared;
  }

  async #use(prepared: Prepared, signal: AbortSignal): Promise<MadeContainer | undefined> {
    if (prepared.kind === 'failed') throw prepared.error;
    if (prepared.kind === 'use') return prepared.made;
    await this.#discard(prepared, signal);
    return undefined;
  }

  async #discard(prepared: Prepared, signal: AbortSignal): Promise<void> {
    if ('made' in prepared) await this.#deps.remover.remove(prepared.made.id, 'keep-logs', signal);
  }

  /** One that an earlier sync made and could not start any more, because kubeling ended or gave up in between. */
  #madeBefore({ observed, container, sandbox }: ContainerStart): MadeContainer | undefined {
    const newest = newestInstance(observed, container.name);
    const usable =
      newest?.state === 'created' &&
      // One whose start was given up is there to be removed.
      newest.finishedAtNs <= 0n &&
      newest.sandboxId === sandbox.id &&
      newest.hash === specHash(container) &&
      !this.#refused.has(newest.id);
    return usable ? { id: newest.id, logPath: newest.logPath } : undefined;
  }

  async #make(
    start: ContainerStart,
    signal: AbortSignal,
    mayMake: () => boolean = () => true,
  ): Promise<MadeContainer> {
    const images = await this.#images(start, signal);
    await this.#removeUnstarted(start, signal);
    const first = await this.#restartCount(start);
    for (let restartCount = first; ; restartCount++) {
      const plan = await this.#plan(start, images, restartCount, signal);
      if (!mayMake()) throw new KubelingError('CANCELLED', 'The container is not wanted any more');
      try {
        const id = await this.#create(start, plan, restartCount, signal);
        this.#event(start.pod, start.container, 'Normal', 'Created', 'Container created', id);
        return { id, logPath: logPathOf(start, plan) };
      } catch (error) {
        signal.throwIfAborted();
        if (isNameTaken(error) && restartCount - first < mostSkips) continue;
        throw this.#failed(start, 'CreateContainerError', explainRefusal(error, plan.config));
      }
    }
  }

  /** What was made and is not used must not start later, by a call that is still on its way. */
  async #removeUnstarted({ observed, container }: ContainerStart, signal: AbortSignal): Promise<void> {
    const unused = observed.containers.filter(
      ({ name, state }) => name === container.name && state === 'created',
    );
    for (const { id } of unused) await this.#deps.remover.remove(id, 'keep-logs', signal);
  }

  /** Its own, and those it mounts: the failure of one is shown by the containers that want it and by no other. */
  async #images(start: ContainerStart, signal: AbortSignal): Promise<StartImages> {
    const { pod, container } = start;
    const volumes = new Map<string, MountableImage>();
    for (const { name, reference, pullPolicy } of imageVolumesOf(pod, container)) {
      const wanted = { image: reference, pullPolicy, fieldPath: undefined };
      const { ref } = await this.#ensure(start, wanted, signal);
      volumes.set(name, { kind: 'image', image: ref, asked: reference });
    }
    const { image = '', imagePullPolicy: pullPolicy, name } = container;
    const wanted = { image, pullPolicy, fieldPath: containerFieldPath(pod, name) };
    return { own: await this.#ensure(start, wanted, signal), volumes };
  }

  async #ensure(start: ContainerStart, wanted: WantedImage, signal: AbortSignal): Promise<ImageFacts> {
    const { pod, container, sandbox, seenImages } = start;
    const { image, pullPolicy, fieldPath } = wanted;
    const ensured = await this.#deps.images.ensureImageExists(
      {
        pod,
        container: { name: container.name, image, pullPolicy },
        fieldPath,
        sandboxConfig: sandbox.config,
        seen: seenImages,
      },
      signal,
    );
    if (ensured.ok) return ensured.image;
    const { reason, message, waitMs } = ensured;
    this.#event(pod, container, 'Warning', 'Failed', `Error: ${reason}`);
    const retry = waitMs === undefined ? {} : { retryAtMs: this.#deps.clock.monotonicMs() + waitMs };
    throw new StartFailure({ reason, message, ...retry });
  }

  /**
   * One more than any instance that ran has: one that never did is not counted, and makes way. When the runtime has
   * forgotten all of them, by the logs they left.
   */
  async #restartCount({ observed, container, sandbox }: ContainerStart): Promise<number> {
    const instances = observed.containers.filter(({ name }) => name === container.name);
    const counts = instances.map(({ state, restartCount }) =>
      state === 'created' ? restartCount : restartCount + 1,
    );
    if (counts.length > 0) return Math.max(...counts);
    const directory = posix.join(sandbox.config.logDirectory ?? '', container.name);
    return restartCountFromLogs(await this.#deps.files.names(directory).catch(() => []));
  }

  async #plan(
    start: ContainerStart,
    { own: image, volumes: volumeImages }: StartImages,
    restartCount: number,
    signal: AbortSignal,
  ): Promise<ContainerPlan> {
    const { pod, container, sandbox } = start;
    const { files, planner } = this.#deps;
    try {
      const targetId = targetOf(start);
      const plan = await planner.containerPlan(
        { pod, container, restartCount, image, volumeImages, podIps: sandbox.ips, targetId },
        signal,
      );
      await files.makeDirectory(posix.dirname(logPathOf(start, plan)), logDirectoryMode);
      for (const { path, text, mode } of plan.files) await files.write(path, text, mode);
      return plan;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#failed(start, 'CreateContainerConfigError', error);
    }
  }

  async #create(
    start: ContainerStart,
    { config }: ContainerPlan,
    attempt: number,
    signal: AbortSignal,
  ): Promise<string> {
    const { cri, clock } = this.#deps;
    const { id: podSandboxId, config: sandboxConfig } = start.sandbox;
    try {
      return (await cri.createContainer({ podSandboxId, config, sandboxConfig }, signal)).containerId;
    } catch (error) {
      signal.throwIfAborted();
      if (!mayHaveHappened(error)) throw error;
      const look = (inner: AbortSignal) => this.#find(start, attempt, inner);
      const found = await lookAfter(error, clock, look, signal).catch(() => undefined);
      signal.throwIfAborted();
      if (found === undefined) throw error;
      this.#deps.logger.info('Took over a container the runtime had made without saying so', {
        pod: describePod(start.pod),
        container: start.container.name,
        id: found.id,
      });
      return found.id;
    }
  }

  /** A container as we would have made it, not started yet. */
  async #find(
    { pod, container, sandbox }: ContainerStart,
    attempt: number,
    signal: AbortSignal,
  ): Promise<CriContainer | undefined> {
    const labelSelector = { [labels.podUid]: pod.metadata.uid, [labels.containerName]: container.name };
    const { containers } = await this.#deps.cri.listContainers({ filter: { labelSelector } }, signal);
    const hash = specHash(container);
    return containers.find(
      ({ metadata, podSandboxId, state, annotations }) =>
        metadata?.attempt === attempt &&
        podSandboxId === sandbox.id &&
        state === 'CONTAINER_CREATED' &&
        readContainerAnnotations(annotations).hash === hash,
    );
  }

  async #run(start: ContainerStart, { id, logPath }: MadeContainer, signal: AbortSignal): Promise<void> {
    const { pod, container, observed } = start;
    const { crashBackoff, clock, startNotes, postStart, cri } = this.#deps;
    await crashBackoff.noteRestart(pod, container, observed, clock.now());
    await postStart.announce({ pod, container, id });
    const isNoted = isOnlyStart(pod, container);
    if (isNoted) await startNotes.underWay(pod, id);
    signal.throwIfAborted();
    try {
      await cri.startContainer({ containerId: id }, signal);
      if (isNoted) await startNotes.answered(pod, id);
    } catch (error) {
      signal.throwIfAborted();
      if (!(await this.#hasStarted(id, error, signal))) {
        // One that may yet start must stay the one to start: another beside it could come to run at the same time.
        if (!mayHaveHappened(error)) {
          this.#refused.set(id, true);
          if (isNoted) await startNotes.answered(pod, id);
        }
        throw this.#failed(start, 'RunContainerError', error, id);
      }
    }
    this.#event(pod, container, 'Normal', 'Started', 'Container started', id);
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

  #failed(start: ContainerStart, reason: string, error: unknown, id = ''): StartFailure {
    const message = describeError(error);
    this.#event(start.pod, start.container, 'Warning', 'Failed', `Error: ${message}`, id);
    return new StartFailure({ reason, message });
  }

  #unexpected(start: ContainerStart, error: unknown): ActionFailure {
    const { pod, container } = start;
    this.#deps.logger.error('Cannot start a container', error, {
      pod: describePod(pod),
      container: container.name,
    });
    return this.#failed(start, 'CreateContainerError', error).failure;
  }

  /** Ids differ from try to try; the name keeps events of one cause alike. */
  #event(
    pod: Pod,
    { name }: Container,
    type: PodEvent['type'],
    reason: string,
    text: string,
    containerId = '',
  ): void {
    const message = containerId === '' ? text : text.replaceAll(containerId, name);
    this.#deps.journal.event(pod, { type, reason, message, fieldPath: containerFieldPath(pod, name) });
  }

  #step(start: ContainerStart, outcome: 'done' | 'failed' | 'waiting', message: string, ms?: number): void {
    const { pod, container } = start;
    this.#deps.journal.step(pod.metadata.uid, {
      stage: 'container',
      outcome,
      message,
      container: container.name,
      ms,
    });
  }
}

/** What a container is made for: one that was made for anything else is of no use. */
function fitOf({ container, sandbox }: Pick<ContainerStart, 'container' | 'sandbox'>): string {
  return `${sandbox.id} ${specHash(container)}`;
}

function logPathOf({ sandbox }: ContainerStart, { config }: ContainerPlan): string {
  return posix.join(sandbox.config.logDirectory ?? '', config.logPath ?? '');
}

function targetOf({ container, observed }: ContainerStart): string | undefined {
  const name = 'targetContainerName' in container ? container.targetContainerName : undefined;
  if (name === undefined || name === '') return undefined;
  const target: ObservedContainer | undefined = newestInstance(observed, name);
  if (target !== undefined) return target.id;
  throw new KubelingError('CONTAINER_TARGET', `unable to find target container ${name}`);
}
