import { type KubelingError, onAbort } from '../../lib/index.ts';

interface Waiter {
  readonly version: number;
  readonly settle: (error: KubelingError | undefined) => void;
}

/** Those who wait until a version is reached. One who gives up leaves at once. */
export class VersionWaiters {
  readonly #waiters = new Set<Waiter>();

  wait(version: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        version,
        settle: (error) => {
          this.#waiters.delete(waiter);
          link[Symbol.dispose]();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#waiters.add(waiter);
      const link = onAbort(signal, (reason) => {
        this.#waiters.delete(waiter);
        reject(reason);
      });
    });
  }

  reached(version: number): void {
    for (const waiter of this.#waiters) if (waiter.version <= version) waiter.settle(undefined);
  }

  /** All of them, whatever they wait for. */
  fail(error: KubelingError): void {
    for (const waiter of this.#waiters) waiter.settle(error);
  }
}
