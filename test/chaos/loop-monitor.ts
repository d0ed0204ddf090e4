import { threadCpuMs } from './thread-cpu.ts';

/**
 * Measures the longest turn of the event loop in CPU time of its thread. This excludes the time of
 * other programs on the machine, and includes garbage collection on this thread.
 */
export class LoopMonitor {
  #lastCpuMs = threadCpuMs();
  #longestMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#turn(), 1);
  }

  /** Returns the duration of the longest turn of the event loop since the previous call. */
  takeLongestMs(): number {
    const longest = this.#longestMs;
    this.#longestMs = 0;
    return longest;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #turn(): void {
    const nowMs = threadCpuMs();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastCpuMs);
    this.#lastCpuMs = nowMs;
  }
}
