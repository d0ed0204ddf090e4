import { type Clock, libcFunctions } from '../../lib/index.ts';

export interface MemoryReclaimDeps {
  readonly clock: Clock;
  /** CPU time of the process so far. */
  readonly cpuMs: () => number;
  /** Collects all garbage and returns free memory to the system. It blocks the event loop. */
  readonly collect: () => void;
}

const sampleMs = 5_000;
/** Below this CPU share the process is at rest. */
const restingShare = 0.02;
/** Less work than this leaves too little garbage to collect. */
const leastWorkMs = 500;
/** Work per cost of a collection: collections take at most a thirtieth of the CPU time, */
const workPerCost = 30;
/** or a tenth after a long idle time, because unused memory would stay allocated for hours. */
const workPerCostWhenIdle = 10;
const idleShare = 0.01;
const idleSamples = 6;
const minIntervalMs = 30_000;

/**
 * Returns memory to the system while the process is idle. A busy process is left alone, because
 * rare collections keep it fast. Resolves when aborted.
 */
export async function reclaimMemory(
  { clock, cpuMs, collect }: MemoryReclaimDeps,
  signal: AbortSignal,
): Promise<void> {
  let tidiedMs = Number.NEGATIVE_INFINITY;
  let tidiedCpuMs = 0;
  let costMs = 0;
  let beforeMs = cpuMs();
  const samples = [beforeMs];
  for (;;) {
    try {
      await clock.sleep(sampleMs, signal);
    } catch {
      return;
    }
    const usedMs = cpuMs();
    const isResting = (usedMs - beforeMs) / sampleMs < restingShare;
    beforeMs = usedMs;
    // Averaged, because work every ten seconds must not count as activity each time.
    const longAgoMs = samples.push(usedMs) > idleSamples ? samples.shift() : undefined;
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
 * Undefined where Node.js runs without --expose-gc. malloc_trim is needed too, because the C
 * library would keep memory that is freed outside of the heap: some ten megabytes after much work.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  libcFunctions({ malloc_trim: { arguments: ['uint64'], return: 'int32' } }).malloc_trim?.(0n);
}

export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
