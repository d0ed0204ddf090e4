import { join } from 'node:path';
import { type CgroupHost, detectCgroupLayout, type Logger } from '../../lib/index.ts';
import type { MemoryHeadroom, MemoryThresholdNotifier, WatchMemory } from './memory-threshold-notifier.ts';

export interface KernelMemoryAlarmDeps {
  readonly logger: Logger;
  readonly cgroups: CgroupHost;
  readonly watch: WatchMemory;
  /** The path of the cgroup of all pods, relative to the root of each controller tree. */
  readonly podsCgroup: string;
}

/**
 * Uses memory notifications of the kernel (cgroups v1). Where the kernel has none, for example with
 * cgroups v2, memory is only polled.
 */
export class KernelMemoryAlarm implements MemoryThresholdNotifier {
  readonly #deps: KernelMemoryAlarmDeps;
  #root: Promise<string | undefined> | undefined;
  #watched: Disposable | undefined;
  #isWorking = true;

  constructor(deps: KernelMemoryAlarmDeps) {
    this.#deps = deps;
  }

  async set(rooms: readonly MemoryHeadroom[], goesOff: () => void): Promise<void> {
    this[Symbol.dispose]();
    const root = await this.#findRoot();
    if (root === undefined || rooms.length === 0) return;
    const { logger, watch, podsCgroup } = this.#deps;
    const growths = rooms.map(({ signal, bytes }) => ({
      directory: signal === 'allocatableMemory.available' ? join(root, podsCgroup) : root,
      bytes,
    }));
    try {
      this.#watched = watch(growths, goesOff);
      this.#isWorking = true;
    } catch (error) {
      if (this.#isWorking) logger.error('Kernel memory notifications unavailable, polling memory', error);
      this.#isWorking = false;
    }
  }

  [Symbol.dispose](): void {
    this.#watched?.[Symbol.dispose]();
    this.#watched = undefined;
  }

  /** Returns the cgroup directory to watch; undefined if the kernel has no memory notifications. */
  async #findRoot(): Promise<string | undefined> {
    this.#root ??= this.#lookForRoot();
    return await this.#root;
  }

  async #lookForRoot(): Promise<string | undefined> {
    const layout = await detectCgroupLayout(this.#deps.cgroups);
    if (layout.version === 1) return layout.controllers.get('memory');
    this.#deps.logger.info('Kernel memory notifications unavailable with cgroups v2, polling memory');
    return undefined;
  }
}
