import { cancelled, type Logger } from '../../lib/index.ts';
import type { ObservedContainer, ObservedPod } from '../../pods/index.ts';
import type { ContainerRemover } from './container-remover.ts';

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
    this.#controller.abort(cancelled('The node stops removing dead containers'));
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
