import { type Clock, onAbort, type Timer } from '../../lib/index.ts';

/** What the processors of the machine have done since it was started, in any unit. */
export interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** Who may make a sandbox now. */
export interface Turns {
  /** Whether one that comes now has to wait. */
  readonly isFull: boolean;
  /** To be disposed of when the sandbox is made, or cannot be. */
  take(signal: AbortSignal): Promise<Disposable>;
}

export const anybodysTurn: Turns = { isFull: false, take: async () => ({ [Symbol.dispose]() {} }) };

export interface SandboxTurnsDeps {
  readonly clock: Clock;
  /** How many of them the machine has. */
  readonly processors: number;
  /** Rejects where nobody knows: then they count as idle. */
  readonly cpuTimes: () => Promise<CpuTimes>;
}

const lookMs = 100;
/** From this share on, what is under way leaves the processors room for more. */
const idleShare = 0.25;
/** Who takes longer does not work, but waits for something, and keeps nobody waiting. */
const longestMs = 2_000;

/**
 * Lets the sandboxes of many pods be made a few at a time, in the order they were asked for: all at once they would
 * take longer together, and all of them as long as the last. Where that leaves processors idle, as with a network that
 * is slow, more are let in.
 */
export class SandboxTurns implements Turns {
  readonly #deps: SandboxTurnsDeps;
  readonly #places: number;
  readonly #line = new Set<() => void>();
  #held = 0;
  #look: Timer | undefined;
  #before: CpuTimes | undefined;

  constructor(deps: SandboxTurnsDeps) {
    this.#deps = deps;
    this.#places = Math.max(4, 2 * deps.processors);
  }

  get isFull(): boolean {
    return this.#held >= this.#places || this.#line.size > 0;
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
      this.#admit(this.#places);
    };
    const timer = this.#deps.clock.timer(longestMs, giveBack);
    return { [Symbol.dispose]: giveBack };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#line.add(go);
      const link = onAbort(signal, (reason) => {
        this.#line.delete(go);
        reject(reason);
      });
      this.#look ??= this.#lookSoon();
    });
  }

  #admit(places: number): void {
    for (const go of this.#line) {
      if (this.#held >= places) return;
      this.#line.delete(go);
      this.#held++;
      go();
    }
  }

  #lookSoon(): Timer {
    return this.#deps.clock.timer(lookMs, () => void this.#lookNow());
  }

  async #lookNow(): Promise<void> {
    const now = await this.#deps.cpuTimes().catch(() => undefined);
    if (this.#isIdle(now)) this.#admit(Math.max(this.#held, this.#places) + this.#deps.processors);
    this.#before = this.#line.size > 0 ? now : undefined;
    this.#look = this.#line.size > 0 ? this.#lookSoon() : undefined;
  }

  /** Since the last look; nobody can tell from the first. */
  #isIdle(now: CpuTimes | undefined): boolean {
    if (now === undefined) return true;
    const before = this.#before;
    return before !== undefined && now.idle - before.idle >= idleShare * (now.total - before.total);
  }
}

/** From the text of /proc/stat. */
export function cpuTimesIn(text: string): CpuTimes {
  const [, ...times] = (/^cpu .*$/m.exec(text)?.[0] ?? '').split(/\s+/).map(Number);
  if (times.length < 5 || times.some(Number.isNaN))
    throw new Error('/proc/stat does not tell what the processors do');
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, ...others] = times;
  // The last two of ten are in the first two already.
  const rest = others.slice(0, 3).reduce((sum, time) => sum + time, 0);
  return { idle: idle + waiting, total: user + nice + system + idle + waiting + rest };
}
