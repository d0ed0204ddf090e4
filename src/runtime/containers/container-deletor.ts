import type { CriClient } from '../../cri/index.ts';
import { cancelledError, isKind, type Logger, SingleFlight } from '../../lib/index.ts';
import type { ObservedContainer, ObservedPod } from '../../pods/index.ts';
import { containerLogLink } from '../logs/log-paths.ts';
import { readOwner } from './labels.ts';
import type { RuntimeFiles } from './runtime-files.ts';
import { terminationMessageFile } from './termination-message.ts';

/**
 * Selects dead containers of a pod: either older instances of one container, or all containers of
 * the pod.
 */
export type Surplus =
  | { readonly kind: 'instances-of'; readonly containerId: string; readonly keep: number }
  | { readonly kind: 'all' };

/** Returns the selected dead containers, newest first. */
function surplusContainers(observed: ObservedPod, surplus: Surplus): readonly ObservedContainer[] {
  const dead = observed.containers.filter(({ state }) => state === 'exited');
  if (surplus.kind === 'all') return dead;
  const died = observed.containers.find(({ id }) => id === surplus.containerId);
  if (died === undefined) return [];
  return dead.filter(({ name }) => name === died.name).slice(surplus.keep);
}

export interface ContainerDeletorDeps {
  readonly remover: ContainerRemover;
  readonly logger: Logger;
}

/**
 * The maximum length of the queue of containers to remove; further ones are left to garbage
 * collection.
 */
const longestQueue = 50;

/** Removes surplus dead containers serially in the background, shortly after a container died. */
export class ContainerDeletor implements AsyncDisposable {
  readonly #deps: ContainerDeletorDeps;
  readonly #queue = new Set<string>();
  readonly #controller = new AbortController();
  #worker: Promise<void> | undefined;

  constructor(deps: ContainerDeletorDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#queue.size;
  }

  deleteSurplus(observed: ObservedPod, surplus: Surplus): void {
    if (this.#controller.signal.aborted) return;
    for (const { id } of surplusContainers(observed, surplus)) {
      if (this.#queue.size < longestQueue) this.#queue.add(id);
    }
    if (this.#queue.size > 0) this.#worker ??= this.#work();
  }

  /** Cancels the remaining removals of dead containers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(cancelledError('The container deletor is stopping'));
    await this.#worker;
  }

  async #work(): Promise<void> {
    const { signal } = this.#controller;
    for (const id of this.#queue) {
      try {
        await this.#deps.remover.remove(id, 'with-logs', signal);
      } catch (error) {
        if (signal.aborted) break;
        this.#deps.logger.error('Failed to remove dead container', error, { id });
      }
      this.#queue.delete(id);
    }
    this.#queue.clear();
    this.#worker = undefined;
  }
}

export interface ContainerRemoverDeps {
  readonly cri: Pick<CriClient, 'containerStatus' | 'removeContainer'>;
  readonly files: RuntimeFiles;
  /** The directory of the links to all container logs. */
  readonly logLinksDir: string;
  /** Called with the ID of each removed container. */
  readonly removed: (id: string) => void;
}

/** Removes dead containers; NotFound from the runtime counts as removed. */
export class ContainerRemover {
  readonly #deps: ContainerRemoverDeps;
  /**
   * Shares one RemoveContainer call between callers that remove the same container, because
   * runtimes reject a second call for it.
   */
  readonly #removals = new SingleFlight<string, unknown>();

  constructor(deps: ContainerRemoverDeps) {
    this.#deps = deps;
  }

  /**
   * Removes the logs before the container: if the logs cannot be removed, the container is still
   * listed and the removal is retried.
   */
  async remove(containerId: string, logs: 'with-logs' | 'keep-logs', signal: AbortSignal): Promise<void> {
    try {
      if (logs === 'with-logs') await this.#removeLogs(containerId, signal);
      const remove = (inner: AbortSignal) => this.#deps.cri.removeContainer({ containerId }, inner);
      await this.#removals.run(containerId, remove, signal);
    } catch (error) {
      if (!isKind(error, 'NotFound')) throw error;
    }
    this.#deps.removed(containerId);
  }

  async #removeLogs(containerId: string, signal: AbortSignal): Promise<void> {
    const { cri, files, logLinksDir } = this.#deps;
    const { status } = await cri.containerStatus({ containerId }, signal);
    if (status === undefined) return;
    const owner = readOwner(status.labels);
    const lastWords = terminationMessageFile(status);
    if (lastWords !== undefined) await files.remove(lastWords);
    if (owner !== undefined) await files.remove(containerLogLink(logLinksDir, { ...owner, containerId }));
    if (status.logPath !== '') await files.removeLogs(status.logPath);
  }
}
