import type { Backoff, Clock, Logger } from '../lib/index.ts';
import type { Pod, PodSource } from '../pods/index.ts';
import type { CleanupSnapshot } from './cleanup-snapshots.ts';
import { InputMux, type LoopInput } from './input-mux.ts';

/** A change of the desired pods, as the sources deliver it. */
export interface ConfigUpdate {
  readonly op: 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

/** A hint that something happened to a pod in the runtime. */
export interface LifecycleHint {
  readonly type: 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved' | 'PodSync';
  readonly uid: string;
  readonly containerId?: string | undefined;
  /**
   * Set when another hint, found by the same relist of the runtime, has already requested the sync
   * of the pod.
   */
  readonly sync?: 'requested' | undefined;
}

/** The inputs of the sync loop. */
export interface SyncLoopInputs {
  /**
   * Config updates, each as a function that is called when the input is handled: it returns the
   * newest update, or undefined if there is none.
   */
  readonly config: LoopInput<() => ConfigUpdate | undefined>;
  readonly pleg: LoopInput<LifecycleHint>;
  readonly sync: LoopInput<'tick'>;
  /** Snapshots of pods, cgroups and directories, which are collected outside the loop. */
  readonly housekeeping: LoopInput<CleanupSnapshot>;
  readonly probes: LoopInput<string>;
  readonly devices: LoopInput<string>;
}

/** The handlers of the sync loop. Each is awaited: while one runs, no other input is handled. */
export interface SyncHandler {
  handleConfig(update: ConfigUpdate): Promise<void>;
  handleLifecycle(hint: LifecycleHint): Promise<void>;
  /** Syncs the pods whose next sync is due. */
  handleDue(): Promise<void>;
  /** Syncs a pod after a probe result or a change of device health. */
  handlePodSync(uid: string): Promise<void>;
  handlePodCleanups(found: CleanupSnapshot, signal: AbortSignal): Promise<void>;
}

export interface SyncLoopOptions {
  readonly inputs: SyncLoopInputs;
  readonly handler: SyncHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The reasons why no pod can be synced now; empty when the runtime is ready. */
  readonly problems: () => readonly string[];
  /** The back-off of the loop while there are problems. */
  readonly backoff: Backoff;
}

const slowHousekeepingMs = 1_000;

/** The loop that decides which pods are synced. It handles one input at a time. */
export class SyncLoop {
  readonly #options: SyncLoopOptions;
  #enteredMs: number | undefined;

  constructor(options: SyncLoopOptions) {
    this.#options = options;
  }

  /**
   * When the current iteration of the loop began, in milliseconds of the monotonic clock; undefined
   * before the first.
   */
  get enteredMs(): number | undefined {
    return this.#enteredMs;
  }

  /** Runs the sync loop until the signal is aborted or an input ends. */
  async run(signal: AbortSignal): Promise<void> {
    const mux = new InputMux(
      this.#options.inputs as unknown as Readonly<Record<string, LoopInput<unknown>>>,
      signal,
    );
    const { clock, backoff } = this.#options;
    while (!signal.aborted) {
      if (this.#hasProblems()) {
        await clock.sleep(backoff.fail(clock.monotonicMs()), signal).catch(() => {});
        continue;
      }
      backoff.reset();
      this.#enteredMs = clock.monotonicMs();
      const input = await mux.take(signal).catch((error) => {
        if (!signal.aborted) throw error;
      });
      if (input === undefined) return;
      await this.#handle(input.name as keyof SyncLoopInputs, input.item, signal);
    }
  }

  #hasProblems(): boolean {
    const problems = this.#options.problems();
    if (problems.length > 0)
      this.#options.logger.warn('Skipping pod synchronization', { because: problems.join('; ') });
    return problems.length > 0;
  }

  /**
   * Calls the handler of the input. An error of a handler is logged, because it must not end the
   * loop for all pods.
   */
  async #handle(name: keyof SyncLoopInputs, item: unknown, signal: AbortSignal): Promise<void> {
    const { handler, logger } = this.#options;
    try {
      switch (name) {
        case 'config': {
          const update = (item as () => ConfigUpdate | undefined)();
          return update === undefined ? undefined : await handler.handleConfig(update);
        }
        case 'pleg':
          return await handler.handleLifecycle(item as LifecycleHint);
        case 'sync':
          return await handler.handleDue();
        case 'housekeeping':
          return await this.#housekeeping(item as CleanupSnapshot, signal);
        case 'probes':
        case 'devices':
          return await handler.handlePodSync(item as string);
      }
    } catch (error) {
      if (!signal.aborted) logger.error('Sync loop handler failed', error, { input: name });
    }
  }

  async #housekeeping(found: CleanupSnapshot, signal: AbortSignal): Promise<void> {
    const { clock, logger, handler } = this.#options;
    const start = clock.monotonicMs();
    await handler.handlePodCleanups(found, signal);
    const tookMs = clock.monotonicMs() - start;
    if (tookMs > slowHousekeepingMs)
      logger.warn('Housekeeping took longer than expected', { tookMs: Math.round(tookMs) });
  }
}
