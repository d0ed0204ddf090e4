import { type Clock, libcFunctions } from '../../lib/index.ts';

export interface MemoryReclaimDeps {
  readonly clock: Clock;
  /** What the process has taken of the processors so far. */
  readonly cpuMs: () => number;
  /** Collects all garbage and gives the system back what is free. Nothing else happens meanwhile. */
  readonly collect: () => void;
}

const sampleMs = 5_000;
/** With less than this the process is at rest. */
const restingShare = 0.02;
/** Less work than this leaves too little garbage to stop for. */
const leastWorkMs = 500;
/** So much work for each time that a collection takes: all of them together take a thirtieth at most, */
const workPerCost = 30;
/** or a tenth after so long with next to nothing to do: memory that nobody needs would lie idle for hours. */
const workPerCostWhenIdle = 10;
const idleShare = 0.01;
const idleSamples = 6;
const minIntervalMs = 30_000;

/**
 * Gives memory back while nothing happens. Who works hard is left alone: collecting rarely is what makes it fast. Ends
 * with the signal, without an error.
 */
export async function reclaimMemory(
  { clock, cpuMs, collect }: MemoryReclaimDeps,
  signal: AbortSignal,
): Promise<void> {
  let tidiedMs = Number.NEGATIVE_INFINITY;
  let tidiedCpuMs = 0;
  let costMs = 0;
  let beforeMs = cpuMs();
  const looks = [beforeMs];
  for (;;) {
    try {
      await clock.sleep(sampleMs, signal);
    } catch {
      return;
    }
    const usedMs = cpuMs();
    const isResting = (usedMs - beforeMs) / sampleMs < restingShare;
    beforeMs = usedMs;
    // On the whole: what is done every ten seconds must not look like work each time.
    const longAgoMs = looks.push(usedMs) > idleSamples ? looks.shift() : undefined;
    const isIdle = longAgoMs !== undefined && (usedMs - longAgoMs) / (idleSamples * sampleMs) < idleShare;
    const nowMs = clock.monotonicMs();
    const perCost = isIdle ? workPerCostWhenIdle : workPerCost;
    const worthMs = Math.max(leastWorkMs, perCost * costMs);
    if (!isResting || usedMs - tidiedCpuMs < worthMs || nowMs - tidiedMs < minIntervalMs) continue;
    collect();
    tidiedMs = nowMs;
    tidiedCpuMs = beforeMs = cpuMs();
    costMs = tidiedCpuMs - usedMs;
  }
}

/**
 * Nothing where Node.js was not told to let us. What is freed outside of the heap the C library would keep for itself:
 * some ten megabytes after much work.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  libcFunctions({ malloc_trim: { arguments: ['uint64'], return: 'int32' } }).malloc_trim?.(0n);
}

export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
