import type { Kubelet, KubeletSettings, NodeMachine } from '../../../src/kubelet/index.ts';
import { type Clock, type Random, randomInt } from '../../../src/lib/index.ts';
import { memoryRotationFiles } from '../../fakes/memory-rotation-files.ts';
import type { ContainerScript, MemoryFiles } from '../../simulator/index.ts';

/** Log limits so small that logs are rotated continuously. */
export const logPolicy = { maxBytes: 2_000, maxFiles: 3, intervalMs: 10_000, workers: 1 };
const printMs = 500;
const line = `${'x'.repeat(100)}\n`;

/**
 * A node with an often full disk, containers that write many log lines, and images that are pulled
 * and removed.
 */
export class ScarceDisk {
  readonly #random: Random;
  readonly #files: MemoryFiles;
  readonly settings: Partial<KubeletSettings>;

  constructor(random: Random, files: MemoryFiles) {
    this.#random = random;
    this.#files = files;
    const maxAgeMs = random.next() < 0.5 ? 0 : 60_000;
    this.settings = {
      containerLogs: logPolicy,
      imageGc: { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs },
    };
  }

  get machine(): Pick<NodeMachine, 'logFiles' | 'diskSpace'> {
    return {
      logFiles: memoryRotationFiles(this.#files),
      diskSpace: async () => ({ capacityBytes: 1e9, availableBytes: this.#random.next() < 0.5 ? 0 : 5e8 }),
    };
  }

  /** The script of a container, extended with continuous log output. */
  static talking(script: ContainerScript | undefined): ContainerScript | undefined {
    return script && { ...script, output: [{ atMs: 0, everyMs: printMs, text: line }] };
  }

  /** Runs image garbage collection at random intervals, as disk pressure does. */
  async reclaim(kubelet: Kubelet, clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = randomInt(this.#random, this.#random.next() < 0.5 ? 500 : 10_000);
      await clock.sleep(waitMs, signal).catch(() => {});
      if (!signal.aborted) await kubelet.runtime.imageGc?.deleteUnusedImages(signal).catch(() => {});
    }
  }
}
