import { posix } from 'node:path';
import type { CriClient, ContainerStatus as CriContainerStatus } from '../../cri/index.ts';
import type { ContainerStatus, PodStatus } from '../../kinds/index.ts';
import { type Clock, describeError, isKind, onAbort } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { readOwner } from '../containers/labels.ts';
import type { LogView } from './log-decoder.ts';
import type { LogFiles } from './log-files.ts';
import { podLogDirectory } from './log-paths.ts';
import { LogReader, type LogReadRequest } from './log-reader.ts';
import { LogFileSequence } from './log-trail.ts';

export interface ContainerLogsDeps {
  readonly cri: Pick<CriClient, 'containerStatus'>;
  readonly clock: Clock;
  readonly files: LogFiles;
  readonly podLogsDir: string;
  /** Registers followed logs, so that the log rotation can notify their readers. */
  readonly followers?: Pick<LogFollowers, 'add'> | undefined;
}

export interface ContainerLogRequest {
  /** The pod with its status. */
  readonly pod: Pod;
  readonly container: string;
  readonly instance: LogInstanceSelector;
  readonly view: LogView;
  readonly tailLines?: number | undefined;
  /** Whether to follow the log until the container instance has exited. */
  readonly follow: 'until-ended' | 'no';
}

export type OpenedLog =
  | { readonly kind: 'refused'; readonly message: string }
  /**
   * The bytes of the log, which can be read once. When the signal is aborted, reading throws its
   * reason and all files are closed.
   */
  | { readonly kind: 'open'; readonly chunks: AsyncIterable<Uint8Array> };

/** Opens container logs for clients of the kubelet API. */
export class ContainerLogs {
  readonly #deps: ContainerLogsDeps;

  constructor(deps: ContainerLogsDeps) {
    this.#deps = deps;
  }

  async open(request: ContainerLogRequest, signal: AbortSignal): Promise<OpenedLog> {
    const { pod, container, instance } = request;
    const chosen = selectLogInstance(pod.metadata.name, pod.status, container, instance);
    if (chosen.kind === 'refused') return chosen;
    const status = await this.#status(chosen.containerId, signal);
    if (status === undefined) return unreadable(chosen.containerId);
    const { path, problem } = this.#pathOf(status, request);
    if (problem !== undefined) return { kind: 'refused', message: problem };
    const { view, tailLines, follow } = request;
    const isRunning = (inner: AbortSignal) => this.#isRunning(status.id, inner);
    const reading = { path, view, tailLines, follow: follow === 'no' ? undefined : { isRunning } };
    return await this.#read(reading, signal);
  }

  async #read(reading: LogReadRequest, signal: AbortSignal): Promise<OpenedLog> {
    try {
      const trail = await LogFileSequence.open(this.#deps, reading.path);
      if (reading.follow !== undefined || trail.upcoming !== undefined) {
        const followed = this.#deps.followers?.add(reading.path, trail);
        const close = async () => {
          followed?.[Symbol.dispose]();
          await trail[Symbol.asyncDispose]();
        };
        return { kind: 'open', chunks: readOnce(new LogReader(this.#deps, reading, trail), close, signal) };
      }
      await trail[Symbol.asyncDispose]();
      return { kind: 'refused', message: `the log ${reading.path} does not exist` };
    } catch (error) {
      if (!isKind(error, 'Denied', 'Failed')) throw error;
      return { kind: 'refused', message: describeError(error) };
    }
  }

  /**
   * Checks the log path that the runtime reports, so that only the log of this container is read.
   */
  #pathOf(
    { logPath, labels }: CriContainerStatus,
    { pod, container }: ContainerLogRequest,
  ): { readonly path: string; readonly problem: string | undefined } {
    const path = posix.normalize(logPath);
    const directory = podLogDirectory(this.#deps.podLogsDir, pod);
    const owner = readOwner(labels);
    if (logPath === '') return { path, problem: `container ${JSON.stringify(container)} has no log` };
    if (owner?.uid !== pod.metadata.uid || owner.containerName !== container)
      return {
        path,
        problem: `the runtime reports another container than ${JSON.stringify(container)}`,
      };
    const isInside = path.startsWith(`${directory}/`);
    return { path, problem: isInside ? undefined : `the log ${path} is not in ${directory}` };
  }

  async #status(containerId: string, signal: AbortSignal): Promise<CriContainerStatus | undefined> {
    try {
      const id = containerId.replace(/^[^:]*:\/\//, '');
      return (await this.#deps.cri.containerStatus({ containerId: id }, signal)).status;
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'Bug')) throw error;
      return undefined;
    }
  }

  /** While the runtime does not respond, the container counts as running. */
  async #isRunning(containerId: string, signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#deps.cri.containerStatus({ containerId }, signal);
      return status?.state === 'CONTAINER_RUNNING';
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'Unavailable', 'DeadlineExceeded')) return true;
      if (isKind(error, 'NotFound')) return false;
      throw error;
    }
  }
}

function unreadable(containerId: string): OpenedLog {
  return { kind: 'refused', message: `unable to retrieve container logs for ${containerId}` };
}

/** Closes the log when it was read completely or cancelled, or never read. */
function readOnce(
  reader: LogReader,
  close: () => Promise<void>,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const link = onAbort(signal, () => void close().catch(() => {}));
  async function* read() {
    try {
      yield* reader.chunks(signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      link[Symbol.dispose]();
      await close();
    }
  }
  return read();
}

/**
 * The readers that follow logs. Before the rotation removes files, the readers open those they have
 * not read yet.
 */
export class LogFollowers {
  readonly #sequences = new Map<string, Set<LogFileSequence>>();

  get size(): number {
    return this.#sequences.size;
  }

  /** Registers a follower until the result is disposed of. */
  add(path: string, trail: LogFileSequence): Disposable {
    const directory = posix.dirname(path);
    const trails = this.#sequences.get(directory) ?? new Set();
    this.#sequences.set(directory, trails.add(trail));
    return {
      [Symbol.dispose]: () => {
        trails.delete(trail);
        if (trails.size === 0 && this.#sequences.get(directory) === trails) this.#sequences.delete(directory);
      },
    };
  }

  /**
   * Resolves when each follower has opened the remaining files of the directory or failed to open
   * them.
   */
  async openRemaining(directory: string): Promise<void> {
    const trails = this.#sequences.get(directory);
    if (trails !== undefined) await Promise.allSettled([...trails].map((trail) => trail.openRemaining()));
  }
}

/** Selects one instance of a container. */
export type LogInstanceSelector =
  | { readonly which: 'newest' }
  /** Selects the instance that ran before the newest one. */
  | { readonly which: 'previous' }
  /**
   * Selects an instance by its container ID as in the pod status, including the scheme such as
   * containerd://.
   */
  | { readonly which: 'id'; readonly id: string };

export type SelectedLogInstance =
  | { readonly kind: 'found'; readonly containerId: string }
  | { readonly kind: 'refused'; readonly message: string };

/** Selects the instance by the pod's status. Rejects with the messages of the Go kubelet. */
export function selectLogInstance(
  podName: string,
  status: PodStatus,
  containerName: string,
  requested: LogInstanceSelector,
): SelectedLogInstance {
  const about = `container ${JSON.stringify(containerName)} in pod ${JSON.stringify(podName)}`;
  const container = statusOf(status, containerName);
  if (container === undefined) return refused(`${about} is not available`);
  if (requested.which === 'id') return byId(container, requested.id, about);
  const last = container.lastState?.terminated?.containerID;
  if (requested.which === 'previous') return found(last) ?? refused(`previous terminated ${about} not found`);
  return newest(container, about);
}

function newest({ containerID, state, lastState }: ContainerStatus, about: string): SelectedLogInstance {
  const last = lastState?.terminated?.containerID;
  const terminated = refused(`${about} is terminated`);
  if (state?.running !== undefined) return found(containerID) ?? terminated;
  if (state?.terminated !== undefined)
    return found(state.terminated.containerID) ?? found(last) ?? terminated;
  if (lastState?.terminated !== undefined) return found(last) ?? terminated;
  if (state?.waiting === undefined) return refused(`${about} is waiting to start - no logs yet`);
  return refused(`${about} is waiting to start: ${waitingWords(state.waiting.reason ?? '')}`);
}

function waitingWords(reason: string): string {
  if (reason === 'ErrImagePull') return "image can't be pulled";
  return reason === 'ImagePullBackOff' ? 'trying and failing to pull image' : reason;
}

/**
 * Accepts only container IDs in the container's status, so that no other container's log can be
 * read.
 */
function byId(
  { containerID, state, lastState }: ContainerStatus,
  id: string,
  about: string,
): SelectedLogInstance {
  const known = [containerID, state?.terminated?.containerID, lastState?.terminated?.containerID];
  return known.includes(id) ? (found(id) ?? refused('')) : refused(`${about} has no instance ${id}`);
}

function statusOf(status: PodStatus, name: string): ContainerStatus | undefined {
  return [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find((container) => container.name === name);
}

function found(containerId: string | undefined): SelectedLogInstance | undefined {
  return containerId === undefined || containerId === '' ? undefined : { kind: 'found', containerId };
}

function refused(message: string): SelectedLogInstance {
  return { kind: 'refused', message };
}
