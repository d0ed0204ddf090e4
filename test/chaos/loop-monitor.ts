import { threadCpuMs } from './thread-cpu.ts';

/**
 * The longest time that one turn of the event loop took, in CPU time of its thread: what other programs of the machine
 * take does not count, what the garbage collector does on this thread counts.
 */
export class LoopMonitor {
  #lastCpuMs = threadCpuMs();
  #longestMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#turn(), 1);
  }

  /** The longest turn since the last time this was called. */
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
