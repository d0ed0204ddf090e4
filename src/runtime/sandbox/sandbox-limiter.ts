import { type Clock, onAbort, type Timer } from '../../lib/index.ts';

/** CPU time since boot; total and idle time have the same unit. */
export interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** Limits concurrent sandbox creations. */
export interface SandboxLimit {
  /** Whether the next sandbox creation has to wait for a slot. */
  readonly isFull: boolean;
  /** Acquires a slot; the caller disposes of it when its sandbox creation has ended. */
  take(signal: AbortSignal): Promise<Disposable>;
}

export const noSandboxLimit: SandboxLimit = { isFull: false, take: async () => ({ [Symbol.dispose]() {} }) };

export interface SandboxLimiterDeps {
  readonly clock: Clock;
  /** Number of CPUs of the machine. */
  readonly processors: number;
  /** Reads CPU times. When it rejects, the CPUs count as idle. */
  readonly cpuTimes: () => Promise<CpuTimes>;
}

const sampleMs = 100;
/** Share of idle CPU time above which more sandbox creations are started. */
const idleShare = 0.25;
/**
 * A sandbox creation that takes longer than this waits for something other than CPU, so its slot is
 * released.
 */
const maxHoldMs = 2_000;

/**
 * Limits concurrent sandbox creations, in the order of requests: on a busy machine, all creations
 * running concurrently would each take as long as the last one. While CPUs are idle, for example
 * with a slow network, more creations are started.
 */
export class SandboxLimiter implements SandboxLimit {
  readonly #deps: SandboxLimiterDeps;
  readonly #limit: number;
  readonly #waiters = new Set<() => void>();
  #held = 0;
  #sampleTimer: Timer | undefined;
  #lastSample: CpuTimes | undefined;

  constructor(deps: SandboxLimiterDeps) {
    this.#deps = deps;
    this.#limit = Math.max(4, 2 * deps.processors);
  }

  get isFull(): boolean {
    return this.#held >= this.#limit || this.#waiters.size > 0;
  }

  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.isFull) await this.#wait(signal);
    else this.#held++;
    let isHeld = true;
    const giveBack = () => {
      if (!isHeld) return;
      isHeld = false;
      timer.cancel();
      this.#held--;
      this.#admit(this.#limit);
    };
    const timer = this.#deps.clock.timer(maxHoldMs, giveBack);
    return { [Symbol.dispose]: giveBack };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#waiters.add(go);
      const link = onAbort(signal, (reason) => {
        this.#waiters.delete(go);
        reject(reason);
      });
      this.#sampleTimer ??= this.#scheduleSample();
    });
  }

  #admit(places: number): void {
    for (const go of this.#waiters) {
      if (this.#held >= places) return;
      this.#waiters.delete(go);
      this.#held++;
      go();
    }
  }

  #scheduleSample(): Timer {
    return this.#deps.clock.timer(sampleMs, () => void this.#sample());
  }

  async #sample(): Promise<void> {
    const now = await this.#deps.cpuTimes().catch(() => undefined);
    if (this.#isIdle(now)) this.#admit(Math.max(this.#held, this.#limit) + this.#deps.processors);
    this.#lastSample = this.#waiters.size > 0 ? now : undefined;
    this.#sampleTimer = this.#waiters.size > 0 ? this.#scheduleSample() : undefined;
  }

  /** Whether the CPUs were idle since the previous sample; false for the first sample. */
  #isIdle(now: CpuTimes | undefined): boolean {
    if (now === undefined) return true;
    const before = this.#lastSample;
    return before !== undefined && now.idle - before.idle >= idleShare * (now.total - before.total);
  }
}

/** Parses CPU times from /proc/stat. */
export function parseCpuTimes(text: string): CpuTimes {
  const [, ...times] = (/^cpu .*$/m.exec(text)?.[0] ?? '').split(/\s+/).map(Number);
  if (times.length < 5 || times.some(Number.isNaN)) throw new Error('/proc/stat has no line with CPU times');
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, ...others] = times;
  // Excludes guest times, which are included in user and nice time.
  const rest = others.slice(0, 3).reduce((sum, time) => sum + time, 0);
  return { idle: idle + waiting, total: user + nice + system + idle + waiting + rest };
}
