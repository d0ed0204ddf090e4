import { posix } from 'node:path';
import type { CriClient, Container as CriContainer, Image } from '../../cri/index.ts';
import type { Container, EphemeralContainer } from '../../kinds/index.ts';
import { type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import {
  containerFieldPath,
  describePod,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodEvent,
  type PodJournal,
} from '../../pods/index.ts';
import type { ImageFacts, ImageManager, ImageRequest } from '../images/image-manager.ts';
import { restartCountFromLogs } from '../logs/log-paths.ts';
import type { ContainerPlan, PodPlanner } from '../plan/pod-planner.ts';
import type { CreatedContainer } from '../plan/restart-preparation.ts';
import type { ReadySandbox } from '../sandbox/sandbox-starter.ts';
import type { ActionFailure } from '../sync/sync-result.ts';
import { isNameReserved, mayHaveTakenEffect, pollForResult } from '../sync/unknown-outcome.ts';
import type { ContainerRemover } from './container-deletor.ts';
import { labels, readContainerAnnotations } from './labels.ts';
import type { MountableImage } from './mounts.ts';
import { explainRefusal, imageVolumesOf } from './mounts.ts';
import type { RuntimeFiles } from './runtime-files.ts';
import { specHash } from './spec-hash.ts';

export interface ContainerCreatorDeps {
  readonly cri: Pick<CriClient, 'createContainer' | 'listContainers'>;
  readonly clock: Clock;
  readonly files: RuntimeFiles;
  readonly logger: Logger;
  readonly planner: PodPlanner;
  readonly images: ImageManager;
  readonly remover: ContainerRemover;
  readonly recorder: StartRecorder;
}

/**
 * The images from which a container is created, all present on the node: the image of the container
 * itself and the images of its image volumes.
 */
interface StartImages {
  readonly own: ImageFacts;
  /** The images of image volumes by volume name. */
  readonly volumes: ReadonlyMap<string, MountableImage>;
}

interface RequiredImage {
  readonly image: string;
  readonly pullPolicy: string | undefined;
  readonly fieldPath: string | undefined;
  readonly hold: ImageRequest['hold'];
}

const logDirectoryMode = 0o755;
const maxNameConflicts = 2;

/** Creates containers: pulls images, builds the config and calls CreateContainer. */
export class ContainerCreator {
  readonly #deps: ContainerCreatorDeps;

  constructor(deps: ContainerCreatorDeps) {
    this.#deps = deps;
  }

  /**
   * Creates the container. Throws a StartFailure, or CANCELLED when `mayCreate` returns false right
   * before CreateContainer.
   */
  async create(
    start: ContainerStart,
    mayCreate: () => boolean,
    signal: AbortSignal,
  ): Promise<CreatedContainer> {
    using leases = new DisposableStack();
    const hold = (lease: Disposable) => void leases.use(lease);
    const images = await this.#ensureImages(start, hold, signal);
    await this.#removeUnstarted(start, signal);
    const first = await this.#restartCount(start);
    for (let restartCount = first; ; restartCount++) {
      const plan = await this.#plan(start, images, restartCount, signal);
      if (!mayCreate()) throw new KubelingError('CANCELLED', 'The container is no longer needed');
      try {
        const id = await this.#createContainer(start, plan, restartCount, signal);
        this.#deps.recorder.event(start, { type: 'Normal', reason: 'Created', text: 'Container created' });
        return { id, logPath: logPathOf(start, plan) };
      } catch (error) {
        signal.throwIfAborted();
        if (isNameReserved(error) && restartCount - first < maxNameConflicts) continue;
        throw this.#deps.recorder.failed(start, 'CreateContainerError', explainRefusal(error, plan.config));
      }
    }
  }

  /**
   * Removes instances that were created but not started, because a StartContainer call still in
   * flight could start them later.
   */
  async #removeUnstarted({ observed, container }: ContainerStart, signal: AbortSignal): Promise<void> {
    const unused = observed.containers.filter(
      ({ name, state }) => name === container.name && state === 'created',
    );
    for (const { id } of unused) await this.#deps.remover.remove(id, 'keep-logs', signal);
  }

  /**
   * Pulls the missing images of the container and its image volumes. A failed pull affects only
   * containers that use that image.
   */
  async #ensureImages(
    start: ContainerStart,
    hold: ImageRequest['hold'],
    signal: AbortSignal,
  ): Promise<StartImages> {
    const { pod, container } = start;
    const volumes = new Map<string, MountableImage>();
    for (const { name, reference, pullPolicy } of imageVolumesOf(pod, container)) {
      const required = { image: reference, pullPolicy, fieldPath: undefined, hold };
      const { ref } = await this.#ensure(start, required, signal);
      volumes.set(name, { kind: 'image', image: ref, asked: reference });
    }
    const { image = '', imagePullPolicy: pullPolicy, name } = container;
    const required = { image, pullPolicy, fieldPath: containerFieldPath(pod, name), hold };
    return { own: await this.#ensure(start, required, signal), volumes };
  }

  async #ensure(start: ContainerStart, required: RequiredImage, signal: AbortSignal): Promise<ImageFacts> {
    const { pod, container, sandbox, inspectedImages } = start;
    const { image, pullPolicy, fieldPath, hold } = required;
    const ensured = await this.#deps.images.ensureImageExists(
      {
        pod,
        container: { name: container.name, image, pullPolicy },
        fieldPath,
        sandboxConfig: sandbox.config,
        inspected: inspectedImages,
        hold,
      },
      signal,
    );
    if (ensured.ok) return ensured.image;
    const { reason, message, waitMs } = ensured;
    this.#deps.recorder.event(start, { type: 'Warning', reason: 'Failed', text: `Error: ${reason}` });
    const retry = waitMs === undefined ? {} : { retryAtMs: this.#deps.clock.monotonicMs() + waitMs };
    throw new StartFailure({ reason, message, ...retry });
  }

  /**
   * Returns the restart count of the next instance: the highest count of the instances that ran,
   * plus one. An instance that was only created is replaced by an instance with the same count.
   * Without instances the count is derived from the names of the log files.
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
      await Promise.all([
        files.makeDirectoryBelow(...logDirectoryOf(start, plan), logDirectoryMode),
        ...plan.files.map(({ path, text, mode }) => files.write(path, text, mode)),
      ]);
      return plan;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#deps.recorder.failed(start, 'CreateContainerConfigError', error);
    }
  }

  async #createContainer(
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
      if (!mayHaveTakenEffect(error)) throw error;
      const look = (inner: AbortSignal) => this.#findCreated(start, attempt, inner);
      const found = await pollForResult(error, clock, look, signal).catch(() => undefined);
      signal.throwIfAborted();
      if (found === undefined) throw error;
      this.#deps.logger.info('Adopted container after unanswered CreateContainer', {
        pod: describePod(start.pod),
        container: start.container.name,
        id: found.id,
      });
      return found.id;
    }
  }

  /** Finds a created, unstarted container of the same attempt, sandbox and spec hash. */
  async #findCreated(
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
}

/**
 * Returns the root of all pod logs, and the container's log directory relative to this root. Pods
 * may place symlinks below the root.
 */
function logDirectoryOf(start: ContainerStart, plan: ContainerPlan): readonly [root: string, inside: string] {
  const directory = posix.dirname(logPathOf(start, plan));
  const root = posix.dirname(start.sandbox.config.logDirectory ?? '');
  return [root, posix.relative(root, directory)];
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

/** The container to start, with its pod and what the current sync knows about the pod. */
export interface ContainerStart {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  readonly observed: ObservedPod;
  readonly sandbox: ReadySandbox;
  /** The images already inspected during this sync, by name. */
  readonly inspectedImages: Map<string, Image>;
  /** The IDs of containers stopped during this sync; `observed` still lists them as running. */
  readonly stopped: ReadonlySet<string>;
  /** Called when the container was created, before it is started. */
  readonly created?: (() => void) | undefined;
}

/**
 * Aborts the start of a container; `failure` contains the waiting reason for the container's
 * status.
 */
export class StartFailure extends Error {
  readonly failure: ActionFailure;

  constructor(failure: ActionFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

interface StartEvent {
  readonly type: PodEvent['type'];
  readonly reason: string;
  readonly text: string;
  /**
   * A container ID that occurs in the text. In the event it is replaced by the container's name,
   * because events with equal messages are combined and the ID is different for each instance.
   */
  readonly containerId?: string | undefined;
}

/** Records events and journal steps of container starts. */
export class StartRecorder {
  readonly #journal: PodJournal;

  constructor(journal: PodJournal) {
    this.#journal = journal;
  }

  event({ pod, container: { name } }: ContainerStart, event: StartEvent): void {
    const { type, reason, text, containerId = '' } = event;
    const message = containerId === '' ? text : text.replaceAll(containerId, name);
    this.#journal.event(pod, { type, reason, message, fieldPath: containerFieldPath(pod, name) });
  }

  step(
    { pod, container }: ContainerStart,
    outcome: 'done' | 'failed' | 'waiting',
    message: string,
    ms?: number,
  ): void {
    const { name } = container;
    this.#journal.step(pod.metadata.uid, { stage: 'container', outcome, message, container: name, ms });
  }

  /** Records the failure as an event and returns the error to throw. */
  failed(start: ContainerStart, reason: string, error: unknown, containerId = ''): StartFailure {
    const message = describeError(error);
    this.event(start, { type: 'Warning', reason: 'Failed', text: `Error: ${message}`, containerId });
    return new StartFailure({ reason, message });
  }
}
