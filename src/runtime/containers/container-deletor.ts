import type { CriClient } from '../../cri/index.ts';
import { cancelledError, isKind, type Logger, SingleFlight } from '../../lib/index.ts';
import type { ObservedContainer, ObservedPod } from '../../pods/index.ts';
import { containerLogLink } from '../logs/log-paths.ts';
import { readOwner } from './labels.ts';
import type { RuntimeFiles } from './runtime-files.ts';
import { terminationMessageFile } from './termination-message.ts';

/** Which dead containers of a pod to remove: older ones of the container that died, or all of the pod. */
export type Surplus =
  | { readonly kind: 'instances-of'; readonly containerId: string; readonly keep: number }
  | { readonly kind: 'all' };

/** The dead containers that may go, newest first. */
export function surplusContainers(observed: ObservedPod, surplus: Surplus): readonly ObservedContainer[] {
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

/** What does not fit waits for the garbage collection, which finds it anyway. */
const longestQueue = 50;

/** Removes surplus dead containers one after the other in the background, soon after another one died. */
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

  /** Gives up what is still to do. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(cancelledError('The node stops removing dead containers'));
    await this.#worker;
  }

  async #work(): Promise<void> {
    const { signal } = this.#controller;
    for (const id of this.#queue) {
      try {
        await this.#deps.remover.remove(id, 'with-logs', signal);
      } catch (error) {
        if (signal.aborted) break;
        this.#deps.logger.error('Cannot remove a dead container', error, { id });
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
  /** Where the links to all logs are. */
  readonly logLinksDir: string;
  /** Told of each container that is gone. */
  readonly removed: (id: string) => void;
}

/** Removes dead containers. One that is gone already counts as removed. */
export class ContainerRemover {
  readonly #deps: ContainerRemoverDeps;
  /** Several may want the same one gone, and runtimes refuse to remove what is being removed. */
  readonly #removals = new SingleFlight<string, unknown>();

  constructor(deps: ContainerRemoverDeps) {
    this.#deps = deps;
  }

  /** Its logs go first, so that a container whose logs cannot be removed is found again. */
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
