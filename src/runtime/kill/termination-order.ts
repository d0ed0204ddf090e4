import { type Clock, onAbort } from '../../lib/index.ts';
import { initContainersOf, isSidecar, type Pod } from '../../pods/index.ts';

/**
 * The order in which the containers of a pod with sidecars are stopped: a sidecar waits for all
 * regular containers and for all sidecars that are listed after it. Used for one kill of the
 * complete pod.
 */
export class TerminationOrder {
  /**
   * For each sidecar, a promise that resolves when all containers that must stop before it have
   * stopped; it is built from the promise of the next sidecar.
   */
  readonly #predecessors = new Map<string, Promise<unknown>>();
  /** The running containers by name; each promise resolves when the container is stopped. */
  readonly #stopped = new Map<string, PromiseWithResolvers<void>>();

  constructor(pod: Pod, running: readonly string[]) {
    for (const name of running) this.#stopped.set(name, Promise.withResolvers());
    let before: Promise<unknown> = Promise.all(
      pod.spec.containers.map(({ name }) => this.#stopped.get(name)?.promise),
    );
    for (const { name } of initContainersOf(pod).filter(isSidecar).reverse()) {
      this.#predecessors.set(name, before);
      before = Promise.all([before, this.#stopped.get(name)?.promise]);
    }
  }

  stopped(name: string): void {
    this.#stopped.get(name)?.resolve();
  }

  /**
   * Resolves when all containers to stop before this one have stopped, or after `ms`; rejects with
   * the signal's reason.
   */
  async waitForPredecessors(name: string, ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
    const before = this.#predecessors.get(name);
    if (before !== undefined) await settledWithin(before, ms, clock, signal);
  }
}

export function hasSidecar(pod: Pod): boolean {
  return initContainersOf(pod).some(isSidecar);
}

/** Resolves when the promise has settled or after `ms`; rejects with the signal's reason. */
export function settledWithin(
  promise: Promise<unknown>,
  ms: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      timer.cancel();
      link[Symbol.dispose]();
      settle();
    };
    const timer = clock.timer(ms, () => end(resolve));
    const link: Disposable = onAbort(signal, (reason) => {
      timer.cancel();
      reject(reason);
    });
    promise.then(
      () => end(resolve),
      () => end(resolve),
    );
  });
}
