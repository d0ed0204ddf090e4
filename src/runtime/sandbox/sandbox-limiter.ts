import { type Clock, onAbort, type Timer } from '../../lib/index.ts';

/** What the processors of the machine have done since it was started, in any unit. */
export interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** Who may make a sandbox now. */
export interface SandboxLimit {
  /** Whether one that comes now has to wait. */
  readonly isFull: boolean;
  /** To be disposed of when the sandbox is made, or cannot be. */
  take(signal: AbortSignal): Promise<Disposable>;
}

export const noSandboxLimit: SandboxLimit = { isFull: false, take: async () => ({ [Symbol.dispose]() {} }) };

export interface SandboxLimiterDeps {
  readonly clock: Clock;
  /** How many of them the machine has. */
  readonly processors: number;
  /** Rejects where nobody knows: then they count as idle. */
  readonly cpuTimes: () => Promise<CpuTimes>;
}

const sampleMs = 100;
/** From this share on, what is under way leaves the processors room for more. */
const idleShare = 0.25;
/** Who takes longer does not work, but waits for something, and keeps nobody waiting. */
const maxHoldMs = 2_000;

/**
 * Lets the sandboxes of many pods be made a few at a time, in the order they were asked for: all at once they would
 * take longer together, and all of them as long as the last. Where that leaves processors idle, as with a network that
 * is slow, more are let in.
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

  /** Since the last look; nobody can tell from the first. */
  #isIdle(now: CpuTimes | undefined): boolean {
    if (now === undefined) return true;
    const before = this.#lastSample;
    return before !== undefined && now.idle - before.idle >= idleShare * (now.total - before.total);
  }
}

/** From the text of /proc/stat. */
export function parseCpuTimes(text: string): CpuTimes {
  const [, ...times] = (/^cpu .*$/m.exec(text)?.[0] ?? '').split(/\s+/).map(Number);
  if (times.length < 5 || times.some(Number.isNaN))
    throw new Error('/proc/stat does not tell what the processors do');
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, ...others] = times;
  // The last two of ten are in the first two already.
  const rest = others.slice(0, 3).reduce((sum, time) => sum + time, 0);
  return { idle: idle + waiting, total: user + nice + system + idle + waiting + rest };
}
